#include "server/service/in_place_weights.h"

#include <algorithm>
#include <span>

#include "common/kernels/segments.h"
#include "common/kernels/streamed_stores.h"

namespace slipstream {

template <typename Pass>
void InPlaceWeights::ForEachBlock(size_t begin, size_t count, Pass pass) {
  const size_t end = begin + count;
  while (begin < end) {
    const size_t block_end = (begin / kBlockValues + 1) * kBlockValues;
    const size_t values = std::min(block_end, end) - begin;
    const MutexLock lock(LockOf(begin));
    pass(begin, values);
    begin += values;
  }
}

void InPlaceWeights::Set(const FloatBuffer& initial) {
  std::ranges::copy(initial.values(), values_->values().begin());
}

void InPlaceWeights::Add(size_t begin, const ReceivedValues& gradient, const Terms& terms) {
  SegmentParts parts(gradient.segments());
  ForEachBlock(begin, gradient.count(), [&](size_t at, size_t values) {
    const Segments part = parts.Next(values * sizeof(float));
    const std::span<float> weights = values_->values().subspan(at, values);
    rules_->Update(at, {.weights_in = weights, .weights_out = weights},
                   {.sum = {},
                    .last = &part,
                    .last_weight = terms.weight,
                    .inverse_divisor = terms.inverse_divisor},
                   terms.step, {}, Stores::kCached);
  });
}

Weights InPlaceWeights::Copy() {
  const std::shared_ptr<FloatBuffer> copy = pool_.Take();
  const std::span<float> out = copy->values();
  ForEachBlock(0, out.size(), [&](size_t at, size_t values) {
    std::ranges::copy(values_->values().subspan(at, values), out.begin() + at);
  });
  return copy;
}

}  // namespace slipstream
