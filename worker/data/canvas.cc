#include "worker/data/canvas.h"

#include <algorithm>
#include <cmath>

namespace slipstream {
namespace {

/// The pixels from `low` to `high`, widened by `reach`, that lie on the canvas.
struct PixelRange {
  PixelRange(float low, float high, float reach)
      : begin(static_cast<int>(std::clamp(low - reach, 0.0f, Canvas::kSide + 0.0f))),
        end(static_cast<int>(std::clamp(high + reach + 1.0f, 0.0f, Canvas::kSide + 0.0f))) {}

  int begin;
  int end;
};

}  // namespace

void Canvas::DrawLine(GlyphPoint from, GlyphPoint to, float radius, float ink) {
  const float reach = radius + 0.5f;
  const PixelRange columns(std::min(from.x, to.x), std::max(from.x, to.x), reach);
  const PixelRange rows(std::min(from.y, to.y), std::max(from.y, to.y), reach);
  const GlyphPoint line = to - from;
  const float length_squared = std::max(line.x * line.x + line.y * line.y, 1e-6f);

  for (int row = rows.begin; row < rows.end; ++row) {
    for (int column = columns.begin; column < columns.end; ++column) {
      const GlyphPoint pixel = {static_cast<float>(column), static_cast<float>(row)};
      const GlyphPoint offset = pixel - from;
      const float along =
          std::clamp((offset.x * line.x + offset.y * line.y) / length_squared, 0.0f, 1.0f);
      const GlyphPoint gap = offset - along * line;
      const float distance = std::sqrt(gap.x * gap.x + gap.y * gap.y);
      const float covered = std::clamp(reach - distance, 0.0f, 1.0f);
      float& pixel_ink = pixels_[static_cast<size_t>(row) * kSide + static_cast<size_t>(column)];
      pixel_ink = std::max(pixel_ink, covered * ink);
    }
  }
}

}  // namespace slipstream
