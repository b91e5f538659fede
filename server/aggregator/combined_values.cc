#include "server/aggregator/combined_values.h"

#include <cstddef>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/fold.h"
#include "server/core/shard/round.h"

namespace slipstream {

void CombineValues(std::span<WeighedPayload> gradients, PolicyTraits::Weighing weighing,
                   std::span<float> to) {
  PS_CHECK(!gradients.empty() && weighing != PolicyTraits::Weighing::kSum);
  Round round(PolicyTraits::Order::kArrival, weighing);
  for (size_t i = 0; i < gradients.size(); ++i) {
    round.Add({.push = PushId{i}, .examples = gradients[i].examples, .clip = gradients[i].clip});
  }
  for (const Fold& fold : round.TakeFolds({}, /*closes=*/true)) {
    // The payload is freed at the end of the fold.
    const PushPayload payload = std::move(gradients[static_cast<size_t>(fold.push)].payload);
    size_t begin = 0;
    for (const auto& piece : payload.pieces) {
      FoldGradient(to.subspan(begin, piece->count()), piece->segments(), fold.clip * fold.weight,
                   fold.first);
      begin += piece->count();
    }
  }
  if (gradients.size() > 1) ScaleValues(to, static_cast<float>(round.InverseDivisor()));
}

}  // namespace slipstream
