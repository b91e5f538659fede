// Nesterov's momentum, as in torch.optim.SGD: h = g + d θ; v ← m v + h; θ ← θ − α (h + m v).

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

template <bool kHasSum>
SLIPSTREAM_INLINE void NesterovLoop(const Stretch s, float rate, float momentum, float decay) {
  const State state = s.states[0];
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float g = GradientAt<kHasSum>(s, i, decay);
    const float velocity = momentum * state.in[i] + g;
    state.out[i] = velocity;
    s.weights_out[i] = s.weights_in[i] - rate * (g + momentum * velocity);
  }
}

SLIPSTREAM_CPU_DISPATCH
void NesterovSingle(Stretch s, float rate, float momentum, float decay) {
  NesterovLoop<false>(s, rate, momentum, decay);
}

SLIPSTREAM_CPU_DISPATCH
void NesterovSum(Stretch s, float rate, float momentum, float decay) {
  NesterovLoop<true>(s, rate, momentum, decay);
}

class Nesterov final : public UpdateRule {
 public:
  explicit Nesterov(const OptimizerSpec& optimizer)
      : momentum_(static_cast<float>(optimizer.parameters["momentum"])),
        decay_(static_cast<float>(optimizer.weight_decay)) {}

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars&, Stores stores) const override {
    ForEachStretch(arrays, 1, gradient, stores,
                   [rate = step.rate, momentum = momentum_, decay = decay_](const Stretch& s) {
                     s.sum == nullptr ? NesterovSingle(s, rate, momentum, decay)
                                      : NesterovSum(s, rate, momentum, decay);
                   });
  }

 private:
  const float momentum_;
  const float decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeNesterov(const OptimizerSpec& optimizer) {
  return std::make_unique<Nesterov>(optimizer);
}

}  // namespace slipstream
