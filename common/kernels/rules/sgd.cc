// SGD: θ ← θ − α (g + d θ).

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

template <bool kHasSum>
SLIPSTREAM_INLINE void SgdLoop(const Stretch s, float rate, float decay) {
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    s.weights_out[i] = s.weights_in[i] - rate * GradientAt<kHasSum>(s, i, decay);
  }
}

SLIPSTREAM_CPU_DISPATCH
void SgdSingle(Stretch s, float rate, float decay) { SgdLoop<false>(s, rate, decay); }

SLIPSTREAM_CPU_DISPATCH
void SgdSum(Stretch s, float rate, float decay) { SgdLoop<true>(s, rate, decay); }

class Sgd final : public UpdateRule {
 public:
  explicit Sgd(const OptimizerSpec& optimizer)
      : decay_(static_cast<float>(optimizer.weight_decay)) {}

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars&, Stores stores) const override {
    ForEachStretch(arrays, 0, gradient, stores,
                   [rate = step.rate, decay = decay_](const Stretch& s) {
                     s.sum == nullptr ? SgdSingle(s, rate, decay) : SgdSum(s, rate, decay);
                   });
  }

 private:
  const float decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeSgd(const OptimizerSpec& optimizer) {
  return std::make_unique<Sgd>(optimizer);
}

}  // namespace slipstream
