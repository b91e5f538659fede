#include "worker/training/gradient_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/kernels/squares.h"

namespace slipstream {

GradientClip::GradientClip(const OptimizerSpec& optimizer)
    : value_(optimizer.clip_value > 0 ? std::max(static_cast<float>(optimizer.clip_value),
                                                 std::numeric_limits<float>::min())
                                      : 0),
      norm_(optimizer.clip_norm) {}

void GradientClip::ClipValues(std::span<float> gradient) const {
  if (value_ == 0) return;
  for (float& g : gradient) {
    if (std::isfinite(g)) g = std::clamp(g, -value_, value_);
  }
}

float GradientClip::FactorOf(std::span<const float> gradient) const {
  if (norm_ == 0) return 1;
  const double norm = std::sqrt(SumOfSquares(gradient));
  if (norm <= norm_) return 1;
  return std::max(static_cast<float>(norm_ / norm), std::numeric_limits<float>::min());
}

void GradientClip::Clip(std::span<float> gradient) const {
  ClipValues(gradient);
  const float factor = FactorOf(gradient);
  if (factor == 1) return;
  for (float& g : gradient) g *= factor;
}

}  // namespace slipstream
