#include "server/data_plane/in_place_weights.h"

#include <algorithm>
#include <span>

#include "common/kernels/segments.h"
#include "common/kernels/streamed_stores.h"

namespace slipstream {

void InPlaceWeights::Set(const FloatBuffer& initial) {
  const std::span<const float> from = initial.values();
  locks_.ForEachBlock(0, from.size(), [&](size_t at, size_t end) {
    std::ranges::copy(from.subspan(at, end - at), values_->values().subspan(at).begin());
  });
}

void InPlaceWeights::Add(size_t begin, const ReceivedValues& gradient, const Terms& terms) {
  SegmentParts parts(gradient.segments());
  locks_.ForEachBlock(begin, begin + gradient.count(), [&](size_t at, size_t end) {
    const Segments part = parts.Next((end - at) * sizeof(float));
    const std::span<float> weights = values_->values().subspan(at, end - at);
    terms.rules->Update(at, {.weights_in = weights, .weights_out = weights},
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
  locks_.ForEachBlock(0, out.size(), [&](size_t at, size_t end) {
    std::ranges::copy(values_->values().subspan(at, end - at), out.subspan(at).begin());
  });
  return copy;
}

}  // namespace slipstream
