#ifndef SLIPSTREAM_WORKER_DATA_GLYPHS_H_
#define SLIPSTREAM_WORKER_DATA_GLYPHS_H_

#include <cstdint>
#include <span>

namespace slipstream {

/// A point in a glyph's own box: x to the right and y down, both about −1 to 1.
struct GlyphPoint {
  float x = 0;
  float y = 0;

  friend GlyphPoint operator+(GlyphPoint a, GlyphPoint b) { return {a.x + b.x, a.y + b.y}; }
  friend GlyphPoint operator-(GlyphPoint a, GlyphPoint b) { return {a.x - b.x, a.y - b.y}; }
  friend GlyphPoint operator*(float factor, GlyphPoint p) { return {factor * p.x, factor * p.y}; }
};

/// One movement of the pen: a smooth curve through these points in order; `closed` leads back to
/// the first. A stroke of two points is a straight line.
struct GlyphStroke {
  std::span<const GlyphPoint> through;
  bool closed = false;
};

/// Returns the strokes of a decimal digit. REQUIRES: digit < 10.
std::span<const GlyphStroke> GlyphStrokes(uint32_t digit);

/// Returns the point at `share` in [0, 1] of the way from b to c on the smooth curve through a, b,
/// c, d (Catmull and Rom, 1974).
GlyphPoint CurvePoint(GlyphPoint a, GlyphPoint b, GlyphPoint c, GlyphPoint d, float share);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_GLYPHS_H_
