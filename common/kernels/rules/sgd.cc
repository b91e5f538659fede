// SGD: θ ← θ − α (g + d θ).

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

struct Factors {
  float rate;
  float decay;
};

template <bool kHasSum>
SLIPSTREAM_INLINE void StepAt(const Stretch& s, size_t i, const Factors& f) {
  s.weights_out[i] = s.weights_in[i] - f.rate * GradientAt<kHasSum>(s, i, f.decay);
}

SLIPSTREAM_UPDATE_LOOPS(Factors)

class Sgd final : public UpdateRule {
 public:
  explicit Sgd(const OptimizerSpec& optimizer)
      : decay_(static_cast<float>(optimizer.weight_decay)) {}

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars&, Stores stores) const override {
    Run(arrays, 0, gradient, stores, Factors{step.rate, decay_});
  }

 private:
  const float decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeSgd(const OptimizerSpec& optimizer) {
  return std::make_unique<Sgd>(optimizer);
}

}  // namespace slipstream
