// Momentum (Polyak's heavy ball, as torch.optim.SGD): v ← m v + (g + d θ); θ ← θ − α v.

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

template <bool kHasSum>
SLIPSTREAM_INLINE void MomentumLoop(const Stretch s, float rate, float momentum, float decay) {
  const State state = s.states[0];
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float velocity = momentum * state.in[i] + GradientAt<kHasSum>(s, i, decay);
    state.out[i] = velocity;
    s.weights_out[i] = s.weights_in[i] - rate * velocity;
  }
}

SLIPSTREAM_CPU_DISPATCH
void MomentumSingle(Stretch s, float rate, float momentum, float decay) {
  MomentumLoop<false>(s, rate, momentum, decay);
}

SLIPSTREAM_CPU_DISPATCH
void MomentumSum(Stretch s, float rate, float momentum, float decay) {
  MomentumLoop<true>(s, rate, momentum, decay);
}

class Momentum final : public UpdateRule {
 public:
  explicit Momentum(const OptimizerSpec& optimizer)
      : momentum_(static_cast<float>(optimizer.parameters["momentum"])),
        decay_(static_cast<float>(optimizer.weight_decay)) {}

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars&, Stores stores) const override {
    ForEachStretch(arrays, 1, gradient, stores,
                   [rate = step.rate, momentum = momentum_, decay = decay_](const Stretch& s) {
                     s.sum == nullptr ? MomentumSingle(s, rate, momentum, decay)
                                      : MomentumSum(s, rate, momentum, decay);
                   });
  }

 private:
  const float momentum_;
  const float decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeMomentum(const OptimizerSpec& optimizer) {
  return std::make_unique<Momentum>(optimizer);
}

}  // namespace slipstream
