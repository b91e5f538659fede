#include "server/service/update_range.h"

#include <span>

namespace slipstream {

AdamRule AdamRuleOf(const OptimizerSpec& optimizer) {
  return {.beta1 = optimizer.beta1,
          .beta2 = optimizer.beta2,
          .epsilon = optimizer.epsilon,
          .decay = optimizer.weight_decay,
          .is_decoupled = optimizer.kind == OptimizerSpec::Kind::kAdamW};
}

void UpdateRange(const OptimizerSpec& optimizer, const UpdateBuffers& buffers, size_t begin,
                 size_t count, const CombinedGradient& gradient, float rate, float step_scale) {
  using Kind = OptimizerSpec::Kind;
  const std::span<const float> in = buffers.from->values().subspan(begin, count);
  const std::span<float> out = buffers.to->values().subspan(begin, count);
  const auto decay = static_cast<float>(optimizer.weight_decay);
  const Stores stores = StoresFor(buffers.to->values().size_bytes());
  const auto state_in = [&](size_t i) -> std::span<const float> {
    return buffers.state[i]->values().subspan(begin, count);
  };
  const auto state_out = [&](size_t i) {
    return buffers.state_next[i]->values().subspan(begin, count);
  };
  switch (optimizer.kind) {
    case Kind::kSgd:
      return SgdUpdate(in, out, gradient, rate, decay, stores);
    case Kind::kMomentum:
      return MomentumUpdate(in, out, state_in(0), state_out(0), gradient, rate,
                            static_cast<float>(optimizer.momentum), decay, stores);
    case Kind::kAdam:
    case Kind::kAdamW:
      return AdamUpdate(in, out, {state_in(0), state_out(0), state_in(1), state_out(1)}, gradient,
                        FactorsOfAdam(AdamRuleOf(optimizer), buffers.powers, rate, step_scale),
                        stores);
  }
}

}  // namespace slipstream
