#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_MATH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_MATH_H_

#include <cstddef>
#include <cstdint>

#include "worker/compute/cuda/divisor.h"
#include "worker/compute/cuda/host_device.h"

namespace slipstream::cuda {

/// Returns the word at `index` of the rows rows[0], rows[1], … of a table, put one after another.
/// `index` is a uint32_t if it is below Divisor::kNarrowEnd; the size of the table itself does not
/// matter.
template <typename Index>
PS_HOST_DEVICE inline uint32_t GatheredWord(const uint32_t* table, const Divisor& row_words,
                                            const uint32_t* rows, Index index) {
  const Index row = row_words.Of(index);
  const Index column = index - row * row_words.value();
  return table[size_t{rows[row]} * row_words.value() + column];
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_MATH_H_
