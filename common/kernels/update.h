#ifndef SLIPSTREAM_COMMON_KERNELS_UPDATE_H_
#define SLIPSTREAM_COMMON_KERNELS_UPDATE_H_

#include <span>

#include "common/kernels/segments.h"
#include "common/kernels/streamed_stores.h"

namespace slipstream {

/// The update path's arithmetic: free functions over spans, equal to the bit on every instruction
/// set. Each output element depends only on the inputs at its position.

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

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_UPDATE_H_
