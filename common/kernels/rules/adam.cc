// Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1) and AdamW (Loshchilov and Hutter, arXiv
// 1711.05101, algorithm 2). h = g + d θ is limited to ±10¹⁹, so that its square stays finite. Then
// m ← β₁ m + (1 − β₁) h; v ← β₂ v + (1 − β₂) h²; θ ← k θ − α / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) +
// ε). Adam has k = 1; AdamW has no decay in h and k = 1 − α d.

#include "common/kernels/rules/adam.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/kernels/rules/rule_makers.h"

namespace slipstream {
namespace {

using namespace update_stretches;

template <bool kHasSum>
SLIPSTREAM_INLINE void StepAt(const Stretch& s, size_t i, const AdamFactors& f) {
  const float step = AdamStepAt<kHasSum>(s, i, f);
  s.weights_out[i] = f.kept * s.weights_in[i] - step;
}

SLIPSTREAM_UPDATE_LOOPS(AdamFactors)

class Adam final : public UpdateRule {
 public:
  explicit Adam(const OptimizerSpec& optimizer) : optimizer_(optimizer) {}

  RuleScalars InitialScalars() const override { return kFirstPowersOfAdam; }

  RuleScalars Next(const RuleScalars& powers) const override {
    return NextPowersOfAdam(optimizer_, powers);
  }

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars& powers, Stores stores) const override {
    Run(arrays, 2, gradient, stores, FactorsOfAdam(optimizer_, powers, step));
  }

 private:
  const OptimizerSpec optimizer_;
};

}  // namespace

AdamFactors FactorsOfAdam(const OptimizerSpec& optimizer, const RuleScalars& powers,
                          const StepSize& step) {
  PS_CHECK(powers[0] < 1 && powers[1] < 1);
  const double beta1 = optimizer.parameters["beta1"];
  const double beta2 = optimizer.parameters["beta2"];
  const double rate = step.rate;
  const bool is_added = optimizer.kind == RuleKind::kAdam;
  const bool is_taken_off = optimizer.kind == RuleKind::kAdamW;
  // Rate and decay may each be as large as an fp32, their product not.
  const double kept = std::max(1 - rate * optimizer.weight_decay, -1e30);
  return {.rate = static_cast<float>(step.scale * rate / (1 - powers[0])),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - powers[1])),
          .beta1 = static_cast<float>(beta1),
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta2 = static_cast<float>(beta2),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .epsilon = static_cast<float>(optimizer.parameters["epsilon"]),
          .decay = is_added ? static_cast<float>(optimizer.weight_decay) : 0.0f,
          .kept = is_taken_off ? static_cast<float>(kept) : 1.0f};
}

RuleScalars NextPowersOfAdam(const OptimizerSpec& optimizer, const RuleScalars& powers) {
  return {powers[0] * optimizer.parameters["beta1"], powers[1] * optimizer.parameters["beta2"]};
}

std::unique_ptr<const UpdateRule> MakeAdam(const OptimizerSpec& optimizer) {
  return std::make_unique<Adam>(optimizer);
}

}  // namespace slipstream
