#ifndef SLIPSTREAM_COMMON_KERNELS_RULES_ADAM_H_
#define SLIPSTREAM_COMMON_KERNELS_RULES_ADAM_H_

#include "common/kernels/rules/update_rule.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// The factors of one update by Adam, the same for every element.
struct AdamFactors {
  float rate;        // s α / (1 − β₁ᵗ)
  float root_scale;  // 1 / √(1 − β₂ᵗ)
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float epsilon;
  float decay;  // Of the weights, added to the gradient.
  float kept;   // Of the weights, beside that: 1 − α d for AdamW's decay d.
};

/// Returns the factors of the update that makes the version with these powers, β₁ᵗ and β₂ᵗ.
/// REQUIRES: the optimizer is Adam's or AdamW's.
AdamFactors FactorsOfAdam(const OptimizerSpec& optimizer, const RuleScalars& powers,
                          const StepSize& step);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_RULES_ADAM_H_
