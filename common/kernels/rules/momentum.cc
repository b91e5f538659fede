// Momentum (Polyak's heavy ball, as torch.optim.SGD): v ← m v + (g + d θ); θ ← θ − α v.

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

struct Factors {
  float rate;
  float momentum;
  float decay;
};

template <bool kHasSum>
SLIPSTREAM_INLINE void StepAt(const Stretch& s, size_t i, const Factors& f) {
  const float velocity = f.momentum * s.states[0].in[i] + GradientAt<kHasSum>(s, i, f.decay);
  s.states[0].out[i] = velocity;
  s.weights_out[i] = s.weights_in[i] - f.rate * velocity;
}

SLIPSTREAM_UPDATE_LOOPS(Factors)

class Momentum final : public UpdateRule {
 public:
  explicit Momentum(const OptimizerSpec& optimizer)
      : momentum_(static_cast<float>(optimizer.parameters["momentum"])),
        decay_(static_cast<float>(optimizer.weight_decay)) {}

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars&, Stores stores) const override {
    Run(arrays, 1, gradient, stores, Factors{step.rate, momentum_, decay_});
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
