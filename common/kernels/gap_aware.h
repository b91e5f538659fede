#ifndef SLIPSTREAM_COMMON_KERNELS_GAP_AWARE_H_
#define SLIPSTREAM_COMMON_KERNELS_GAP_AWARE_H_

#include <cstdint>
#include <span>

#include "common/kernels/fold.h"
#include "common/kernels/segments.h"

namespace slipstream {

/// Folds a gradient like FoldGradient (fold.h), but divided, value by value, by its gap: 1 +
/// |θ_now − θ_base| / C, where C is the mean size of that weight's steps (Barkai, Hakimi, Schuster:
/// Gap-aware mitigation of gradient staleness, ICLR 2020, arXiv 1909.10802). A weight that has
/// moved by one usual step since θ_base halves its gradient. Results are equal to the bit on every
/// instruction set. REQUIRES: all spans are equally long, and the segments hold exactly as many
/// values.
void FoldGapAware(std::span<float> sum, const Segments& gradient, std::span<const float> base,
                  std::span<const float> now, std::span<const float> mean_step,
                  const FoldTerms& terms);

/// Takes the step from `before` to `after` into the mean sizes of steps: C ← C + (|step| − C) /
/// `updates`, where `updates` counts them, this one included, and more than 100 count as 100.
void NoteStep(std::span<const float> before, std::span<const float> after, uint64_t updates,
              std::span<float> mean_step);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_GAP_AWARE_H_
