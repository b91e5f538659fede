#include "server/service/update_range.h"

#include <span>

namespace slipstream {

void UpdateRange(const OptimizerSpec& optimizer, const UpdateBuffers& buffers, size_t begin,
                 size_t count, const CombinedGradient& gradient, float rate) {
  const std::span<const float> in = buffers.from->values().subspan(begin, count);
  const std::span<float> out = buffers.to->values().subspan(begin, count);
  const auto decay = static_cast<float>(optimizer.weight_decay);
  const Stores stores = StoresFor(buffers.to->values().size_bytes());
  if (optimizer.kind == OptimizerSpec::Kind::kMomentum) {
    MomentumUpdate(in, out, buffers.velocity->values().subspan(begin, count),
                   buffers.velocity_next->values().subspan(begin, count), gradient, rate,
                   static_cast<float>(optimizer.momentum), decay, stores);
  } else {
    SgdUpdate(in, out, gradient, rate, decay, stores);
  }
}

}  // namespace slipstream
