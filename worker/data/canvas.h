#ifndef SLIPSTREAM_WORKER_DATA_CANVAS_H_
#define SLIPSTREAM_WORKER_DATA_CANVAS_H_

#include <array>
#include <cstddef>

#include "worker/data/glyphs.h"

namespace slipstream {

/// A small grey image on which a round pen draws lines. Coordinates are in pixels; the centre of
/// the first pixel is (0, 0).
///
/// The canvas uses only additions, products and square roots, which IEEE 754 rounds equally on
/// every machine.
///
/// Not thread-safe: one owner.
class Canvas {
 public:
  static constexpr int kSide = 28;

  /// Draws a line from `from` to `to` with a pen of `radius` pixels and soft edges. Where lines
  /// cross, the darker ink wins, so a stroke made of many lines looks like one.
  void DrawLine(GlyphPoint from, GlyphPoint to, float radius, float ink);

  /// The pixels row by row, from 0 (paper) to the most ink drawn.
  const std::array<float, static_cast<size_t>(kSide) * kSide>& pixels() const { return pixels_; }

 private:
  std::array<float, static_cast<size_t>(kSide)* kSide> pixels_ = {};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_CANVAS_H_
