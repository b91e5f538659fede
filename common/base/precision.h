#ifndef SLIPSTREAM_COMMON_BASE_PRECISION_H_
#define SLIPSTREAM_COMMON_BASE_PRECISION_H_

#include <cstdint>

namespace slipstream {

/// The precision in which gradients are computed. Under kBf16 and kTf32, products of layers take
/// operands of 8 and of 11 bits of precision, rounded to nearest; their sums, the weights, the
/// gradients and the loss stay fp32. Only GPUs offer kTf32.
enum class Precision : uint8_t { kFp32, kBf16, kTf32 };

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_PRECISION_H_
