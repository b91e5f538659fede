// RMSProp (Tieleman and Hinton, Coursera lecture 6.5, 2012), as torch.optim.RMSprop without
// momentum: h = g + d θ is limited to ±10¹⁹, so that its square stays finite. Then v ← ρ v + (1 −
// ρ) h²; θ ← θ − α h / (√v + ε).

#include <cmath>

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

struct Factors {
  float rate;
  float rho;
  float one_minus_rho;
  float epsilon;
  float decay;
};

template <bool kHasSum>
SLIPSTREAM_INLINE void StepAt(const Stretch& s, size_t i, const Factors& f) {
  const float g = WithFiniteSquare(GradientAt<kHasSum>(s, i, f.decay));
  const float square = f.rho * s.states[0].in[i] + f.one_minus_rho * (g * g);
  s.states[0].out[i] = square;
  s.weights_out[i] = s.weights_in[i] - f.rate * g / (std::sqrt(square) + f.epsilon);
}

SLIPSTREAM_UPDATE_LOOPS(Factors)

class RmsProp final : public UpdateRule {
 public:
  explicit RmsProp(const OptimizerSpec& optimizer)
      : rho_(optimizer.parameters["rho"]),
        epsilon_(static_cast<float>(optimizer.parameters["epsilon"])),
        decay_(static_cast<float>(optimizer.weight_decay)) {}

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars&, Stores stores) const override {
    Run(arrays, 1, gradient, stores,
        Factors{.rate = step.scale * step.rate,
                .rho = static_cast<float>(rho_),
                .one_minus_rho = static_cast<float>(1 - rho_),
                .epsilon = epsilon_,
                .decay = decay_});
  }

 private:
  const double rho_;
  const float epsilon_;
  const float decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeRmsProp(const OptimizerSpec& optimizer) {
  return std::make_unique<RmsProp>(optimizer);
}

}  // namespace slipstream
