#ifndef SLIPSTREAM_COMMON_KERNELS_DELAY_COMPENSATED_H_
#define SLIPSTREAM_COMMON_KERNELS_DELAY_COMPENSATED_H_

#include <span>

#include "common/kernels/fold.h"
#include "common/kernels/segments.h"

namespace slipstream {

/// Folds a gradient like FoldGradient (fold.h), but compensated. The gradient g was computed from
/// weights θ_base and is applied to θ_now, so g + λ g⊙g⊙(θ_now − θ_base) is folded: that is to
/// first order the gradient at θ_now, with λ g⊙g in the place of the Hessian (DC-ASGD, Zheng et
/// al., ICML 2017). `strength` is λ. Results are equal to the bit on every instruction set.
/// REQUIRES: all spans are equally long, and the segments hold exactly as many values.
void FoldDelayCompensated(std::span<float> sum, const Segments& gradient,
                          std::span<const float> base, std::span<const float> now, float strength,
                          const FoldTerms& terms);

/// The same with λ = `strength`/√(m + 1e-7) for each value, where m ← 0.95 m + 0.05 g² is the
/// running mean of the squares of the values, this one included (DC-ASGD-a of the same paper).
void FoldDelayAdapted(std::span<float> sum, const Segments& gradient, std::span<const float> base,
                      std::span<const float> now, std::span<float> mean_square, float strength,
                      const FoldTerms& terms);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_DELAY_COMPENSATED_H_
