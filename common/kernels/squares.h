#ifndef SLIPSTREAM_COMMON_KERNELS_SQUARES_H_
#define SLIPSTREAM_COMMON_KERNELS_SQUARES_H_

#include <span>

namespace slipstream {

/// Returns the sum of the values' squares, in double. It adds up blocks of 1,024 values from the
/// first on, so that the sum is the same to the bit on every instruction set and wherever the
/// values lie.
double SumOfSquares(std::span<const float> values);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_SQUARES_H_
