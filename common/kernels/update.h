#ifndef SLIPSTREAM_COMMON_KERNELS_UPDATE_H_
#define SLIPSTREAM_COMMON_KERNELS_UPDATE_H_

#include <span>

#include "common/kernels/segments.h"
#include "common/kernels/streamed_stores.h"

namespace slipstream {

/// The update path's arithmetic: free functions over spans, equal to the bit on every instruction
/// set. Each output element depends only on the inputs at its position. Numbers below 2⁻¹²⁶ count
/// as 0 where they are read and where they would result; see flushed_subnormals.h.

/// sum[i] = weight · gradient[i] if `first`, else sum[i] += weight · gradient[i].
/// REQUIRES: the segments hold exactly sum.size() values.
void FoldGradient(std::span<float> sum, const Segments& gradient, float weight, bool first);

/// What an update adds up: g[i] = (sum[i] + weight · last[i]) · inverse_divisor. The last gradient
/// of a round is read here instead of being folded first, which saves one pass over the sum.
struct CombinedGradient {
  /// Empty if the round holds nothing but `last`. May be weights_out itself, which is read before
  /// it is written: a sum then takes no memory of its own.
  std::span<const float> sum;

  /// Null if everything has been folded into `sum`.
  const Segments* last = nullptr;
  float last_weight = 1.0f;
  float inverse_divisor = 1.0f;
};

/// weights_out = weights_in − rate · (g + decay · weights_in).
/// REQUIRES: equal sizes; the gradient has a sum or a last part; in and out do not overlap.
void SgdUpdate(std::span<const float> weights_in, std::span<float> weights_out,
               const CombinedGradient& gradient, float rate, float decay,
               Stores stores = Stores::kCached);

/// velocity_out = momentum · velocity_in + (g + decay · weights_in);
/// weights_out = weights_in − rate · velocity_out.
/// REQUIRES: as SgdUpdate.
void MomentumUpdate(std::span<const float> weights_in, std::span<float> weights_out,
                    std::span<const float> velocity_in, std::span<float> velocity_out,
                    const CombinedGradient& gradient, float rate, float momentum, float decay,
                    Stores stores = Stores::kCached);

/// Adam's running means: of the gradient, and of its square.
struct AdamMoments {
  std::span<const float> mean_in;
  std::span<float> mean_out;
  std::span<const float> square_in;
  std::span<float> square_out;
};

/// Adam's settings: Kingma and Ba, arXiv 1412.6980, algorithm 1.
struct AdamRule {
  double beta1 = 0.9;  // In [0, 1), as β₂.
  double beta2 = 0.999;
  double epsilon = 1e-8;  // > 0 in fp32.

  /// Added to the gradient; or, `is_decoupled`, taken off the weights themselves, as AdamW does:
  /// Loshchilov and Hutter, arXiv 1711.05101, algorithm 2.
  double decay = 0;
  bool is_decoupled = false;
};

/// β₁ᵗ and β₂ᵗ after t updates. Multiplied up, as the last bit of a library's power may depend on
/// the processor.
struct AdamPowers {
  double beta1 = 1;
  double beta2 = 1;

  AdamPowers Next(const AdamRule& rule) const { return {beta1 * rule.beta1, beta2 * rule.beta2}; }
};

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

/// Those of the update that makes the powers what they are, at rate α. `step_scale`: s, of the step
/// but not of the decay.
AdamFactors FactorsOfAdam(const AdamRule& rule, const AdamPowers& powers, double rate,
                          double step_scale = 1);

/// h = g + decay · weights_in, from −10¹⁹ to 10¹⁹ so that its square stays finite; mean_out = β₁
/// mean_in + (1 − β₁) h; square_out = β₂ square_in + (1 − β₂) h²; weights_out = kept · weights_in −
/// rate · mean_out / (√square_out · root_scale + ε). REQUIRES: as SgdUpdate.
void AdamUpdate(std::span<const float> weights_in, std::span<float> weights_out,
                const AdamMoments& moments, const CombinedGradient& gradient,
                const AdamFactors& factors, Stores stores = Stores::kCached);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_UPDATE_H_
