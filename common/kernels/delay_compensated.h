#ifndef SLIPSTREAM_COMMON_KERNELS_DELAY_COMPENSATED_H_
#define SLIPSTREAM_COMMON_KERNELS_DELAY_COMPENSATED_H_

#include <span>

#include "common/kernels/segments.h"

namespace slipstream {

/// FoldGradient (fold.h) of a gradient g that was computed from weights θ_base and is applied to
/// θ_now, as g + λ g⊙g⊙(θ_now − θ_base): what the gradient would be there, to first order, with
/// λ g⊙g in the place of the Hessian (DC-ASGD, Zheng et al., ICML 2017). `strength` is λ. Equal to
/// the bit on every instruction set.
/// REQUIRES: all spans are equally long, and the segments hold exactly as many values.
void FoldDelayCompensated(std::span<float> sum, const Segments& gradient,
                          std::span<const float> base, std::span<const float> now, float strength,
                          float weight, bool first);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_DELAY_COMPENSATED_H_
