// Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011), as shards of Downpour use it (Dean et al., NIPS
// 2012) and as torch.optim.Adagrad: h = g + d θ is limited to ±10¹⁹, so that its square stays
// finite. Then s ← s + h²; θ ← θ − α h / (√s + ε). The sum of squares stops at the largest number
// of fp32.

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

struct Factors {
  float rate;
  float epsilon;
  float decay;
};

template <bool kHasSum>
SLIPSTREAM_INLINE void StepAt(const Stretch& s, size_t i, const Factors& f) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const float g = WithFiniteSquare(GradientAt<kHasSum>(s, i, f.decay));
  const float squares = std::min(s.states[0].in[i] + g * g, kMax);
  s.states[0].out[i] = squares;
  s.weights_out[i] = s.weights_in[i] - f.rate * g / (std::sqrt(squares) + f.epsilon);
}

SLIPSTREAM_UPDATE_LOOPS(Factors)

class Adagrad final : public UpdateRule {
 public:
  explicit Adagrad(const OptimizerSpec& optimizer)
      : epsilon_(static_cast<float>(optimizer.parameters["epsilon"])),
        decay_(static_cast<float>(optimizer.weight_decay)) {}

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars&, Stores stores) const override {
    Run(arrays, 1, gradient, stores, Factors{step.scale * step.rate, epsilon_, decay_});
  }

 private:
  const float epsilon_;
  const float decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeAdagrad(const OptimizerSpec& optimizer) {
  return std::make_unique<Adagrad>(optimizer);
}

}  // namespace slipstream
