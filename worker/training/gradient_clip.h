#ifndef SLIPSTREAM_WORKER_TRAINING_GRADIENT_CLIP_H_
#define SLIPSTREAM_WORKER_TRAINING_GRADIENT_CLIP_H_

#include <span>

#include "common/settings/run_spec.h"

namespace slipstream {

/// Clips the gradients of one worker's mini-batches as optimizer.clip_value and clip_norm say:
/// first each value to [−clip_value, clip_value], and then the whole to an L2 norm of clip_norm, as
/// torch.nn.utils.clip_grad_value_ and clip_grad_norm_ do. Values that are not finite stay what
/// they are, so that the step is left out.
///
/// Thread-safe: const after construction.
class GradientClip {
 public:
  explicit GradientClip(const OptimizerSpec& optimizer);

  /// Whether there is a bound of the norm.
  bool clips_norm() const { return norm_ > 0; }

  /// Clips each value.
  void ClipValues(std::span<float> gradient) const;

  /// Returns the factor in (0, 1] that clips the norm of this gradient, which is finite.
  float FactorOf(std::span<const float> gradient) const;

  /// Clips values and norm.
  void Clip(std::span<float> gradient) const;

 private:
  const float value_;  // 0 if values are not clipped.
  const double norm_;  // 0 if the norm is not clipped.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_GRADIENT_CLIP_H_
