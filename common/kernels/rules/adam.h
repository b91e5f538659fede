#ifndef SLIPSTREAM_COMMON_KERNELS_RULES_ADAM_H_
#define SLIPSTREAM_COMMON_KERNELS_RULES_ADAM_H_

#include <cmath>
#include <cstddef>

#include "common/kernels/rules/update_rule.h"
#include "common/kernels/rules/update_stretches.h"
#include "common/settings/run_spec.h"

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
  float decay;  // The share of the weights added to the gradient; Adam alone has it.
  float kept;   // The share of the weights that stays: 1 − α d for AdamW's decay d.
};

/// Returns the factors of the update that makes the version with these powers, β₁ᵗ and β₂ᵗ.
/// REQUIRES: the optimizer has Adam's parameters.
AdamFactors FactorsOfAdam(const OptimizerSpec& optimizer, const RuleScalars& powers,
                          const StepSize& step);

/// The powers of version 0: β₁⁰ and β₂⁰.
inline constexpr RuleScalars kFirstPowersOfAdam = {1, 1};

/// Returns the powers of the next version. They are multiplied up, since the last bit of a
/// library's power may depend on the processor.
RuleScalars NextPowersOfAdam(const OptimizerSpec& optimizer, const RuleScalars& powers);

/// Writes both running means at position i, in states 0 and 1, and returns the step that they make.
template <bool kHasSum>
SLIPSTREAM_INLINE float AdamStepAt(const update_stretches::Stretch& s, size_t i,
                                   const AdamFactors& f) {
  const float g =
      update_stretches::WithFiniteSquare(update_stretches::GradientAt<kHasSum>(s, i, f.decay));
  const float mean = f.beta1 * s.states[0].in[i] + f.one_minus_beta1 * g;
  const float square = f.beta2 * s.states[1].in[i] + f.one_minus_beta2 * (g * g);
  s.states[0].out[i] = mean;
  s.states[1].out[i] = square;
  return f.rate * mean / (std::sqrt(square) * f.root_scale + f.epsilon);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_RULES_ADAM_H_
