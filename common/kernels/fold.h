#ifndef SLIPSTREAM_COMMON_KERNELS_FOLD_H_
#define SLIPSTREAM_COMMON_KERNELS_FOLD_H_

#include <span>

#include "common/kernels/segments.h"

namespace slipstream {

/// How a compensated gradient is added to a sum: sum = weight · C(clip · g) if `first`, else sum +=
/// weight · C(clip · g), where C compensates.
struct FoldTerms {
  float clip = 1;
  float weight = 1;
  bool first = false;
};

/// The update path's arithmetic before the rule (rules/update_rule.h): free functions over spans,
/// whose results are equal to the bit on every instruction set. Each output element depends only on
/// the inputs at its position. Numbers below 2⁻¹²⁶ count as 0, both as inputs and as results; see
/// flushed_subnormals.h.

/// Sets sum[i] = weight · gradient[i] if `first`, else sum[i] += weight · gradient[i].
/// REQUIRES: the segments hold exactly sum.size() values.
void FoldGradient(std::span<float> sum, const Segments& gradient, float weight, bool first);

/// Sets values[i] = factor · values[i].
void ScaleValues(std::span<float> values, float factor);

/// The gradient that an update takes: g[i] = (sum[i] + weight · last[i]) · inverse_divisor. The
/// last gradient of a round is read here instead of being folded first, which saves one pass over
/// the sum.
struct CombinedGradient {
  /// Empty if the round holds nothing but `last`. It may be weights_out itself, since it is read
  /// before weights_out is written: a sum then takes no memory of its own.
  std::span<const float> sum;

  /// Null if everything has been folded into `sum`.
  const Segments* last = nullptr;
  float last_weight = 1.0f;
  float inverse_divisor = 1.0f;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_FOLD_H_
