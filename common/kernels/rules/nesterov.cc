// Nesterov's momentum, as in torch.optim.SGD: h = g + d θ; v ← m v + h; θ ← θ − α (h + m v).

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
  const float g = GradientAt<kHasSum>(s, i, f.decay);
  const float velocity = f.momentum * s.states[0].in[i] + g;
  s.states[0].out[i] = velocity;
  s.weights_out[i] = s.weights_in[i] - f.rate * (g + f.momentum * velocity);
}

SLIPSTREAM_UPDATE_LOOPS(Factors)

class Nesterov final : public UpdateRule {
 public:
  explicit Nesterov(const OptimizerSpec& optimizer)
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

std::unique_ptr<const UpdateRule> MakeNesterov(const OptimizerSpec& optimizer) {
  return std::make_unique<Nesterov>(optimizer);
}

}  // namespace slipstream
