#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_DROPOUT_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_DROPOUT_H_

#include <cstdint>
#include <span>

namespace slipstream {

/// The key that decides, together with an element's position in the mini-batch, which elements a
/// dropout layer drops. Nothing else has an influence: not the worker, its threads, nor earlier
/// computations.
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t batch_index = 0;
  uint32_t layer = 0;
};

/// Zeroes each element with probability `rate` and scales the others by 1/(1 − rate). Forward and
/// backward are the same function; `input` and `output` may be the same.
/// REQUIRES: equal sizes of less than 2⁴² elements, layer < 2²⁴, 0 ≤ rate < 1.
void Dropout(const DropoutKey& key, float rate, std::span<const float> input,
             std::span<float> output);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_DROPOUT_H_
