#include "worker/data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "worker/data/canvas.h"
#include "worker/data/file_bytes.h"
#include "worker/data/glyphs.h"

namespace slipstream {
namespace {

// Separates these random streams from those that other parts draw from the same seed. The split and
// the example are added to it.
constexpr uint64_t kExampleStreams = uint64_t{'G'} << 56;
enum class Split : uint64_t { kTrain = 0, kTest = 1 };

constexpr float kMiddle = (Canvas::kSide - 1) / 2.0f;
constexpr int kLinesPerCurve = 5;
constexpr uint32_t kExamplesPerReport = 256;  // These take some milliseconds.

// Bounds on the differences between examples of one digit. They are chosen so that a small
// convolutional net learns something new for several epochs (README.md has the accuracies).
constexpr float kTurnMax = 0.22f;  // Tangent of half the angle: 25 degrees.
constexpr float kShearMax = 0.35f;
constexpr float kScaleMin = 7.0f;  // Half the glyph's height in pixels.
constexpr float kScaleMax = 11.0f;
constexpr float kWidthShareMin = 0.75f;
constexpr float kWidthShareMax = 1.25f;
constexpr float kShiftMax = 3.0f;
constexpr float kBendMax = 0.22f;
constexpr float kRadiusMin = 0.5f;
constexpr float kRadiusMax = 1.7f;
constexpr float kInkMin = 0.45f;
constexpr float kPaperMax = 0.25f;
constexpr uint32_t kStrayLinesMax = 4;
constexpr float kStrayReach = 6.0f;
constexpr float kNoiseMax = 0.25f;

/// Maps a glyph's points to the canvas: a smooth bend of the box, then an affine map.
///
/// Thread-safe: const after construction.
class Distortion {
 public:
  explicit Distortion(RandomStream& random) {
    for (GlyphPoint& bend : bends_) {
      bend = {random.Uniform(-kBendMax, kBendMax), random.Uniform(-kBendMax, kBendMax)};
    }
    // The tangent of the half angle gives sine and cosine without the library's functions, whose
    // last bits differ between machines.
    const float tangent = random.Uniform(-kTurnMax, kTurnMax);
    const float cosine = (1 - tangent * tangent) / (1 + tangent * tangent);
    const float sine = 2 * tangent / (1 + tangent * tangent);
    const float height = random.Uniform(kScaleMin, kScaleMax);
    const float width = height * random.Uniform(kWidthShareMin, kWidthShareMax);
    const float shear = random.Uniform(-kShearMax, kShearMax);
    x_axis_ = {width * cosine, width * sine};
    y_axis_ = {height * (shear * cosine - sine), height * (shear * sine + cosine)};
    origin_ = {kMiddle + random.Uniform(-kShiftMax, kShiftMax),
               kMiddle + random.Uniform(-kShiftMax, kShiftMax)};
  }

  GlyphPoint Map(GlyphPoint point) const {
    const GlyphPoint bent = point + BendAt(point);
    return origin_ + bent.x * x_axis_ + bent.y * y_axis_;
  }

 private:
  static constexpr size_t kKnots = 3;

  /// Interpolates bilinearly between the offsets at the 3 × 3 knots of the box.
  GlyphPoint BendAt(GlyphPoint point) const {
    const float x = std::clamp(point.x + 1, 0.0f, 2.0f);
    const float y = std::clamp(point.y + 1, 0.0f, 2.0f);
    const size_t column = x < 1 ? 0 : 1;
    const size_t row = y < 1 ? 0 : 1;
    const GlyphPoint* knot = &bends_[row * kKnots + column];
    const float right = x - static_cast<float>(column);
    const float down = y - static_cast<float>(row);
    const GlyphPoint upper = knot[0] + right * (knot[1] - knot[0]);
    const GlyphPoint lower = knot[kKnots] + right * (knot[kKnots + 1] - knot[kKnots]);
    return upper + down * (lower - upper);
  }

  std::array<GlyphPoint, kKnots * kKnots> bends_;
  GlyphPoint x_axis_;
  GlyphPoint y_axis_;
  GlyphPoint origin_;
};

void DrawStroke(const GlyphStroke& stroke, const Distortion& distortion, float radius, float ink,
                Canvas& canvas) {
  const auto points = static_cast<int>(stroke.through.size());
  const auto point = [&](int i) {
    const int index = stroke.closed ? (i + points) % points : std::clamp(i, 0, points - 1);
    return stroke.through[static_cast<size_t>(index)];
  };
  GlyphPoint from = distortion.Map(point(0));
  for (int i = 0; i < (stroke.closed ? points : points - 1); ++i) {
    for (int line = 1; line <= kLinesPerCurve; ++line) {
      const float share = static_cast<float>(line) / kLinesPerCurve;
      const GlyphPoint to =
          distortion.Map(CurvePoint(point(i - 1), point(i), point(i + 1), point(i + 2), share));
      canvas.DrawLine(from, to, radius, ink);
      from = to;
    }
  }
}

void DrawStrayLines(RandomStream& random, Canvas& canvas) {
  for (uint32_t lines = random.Below(kStrayLinesMax + 1); lines > 0; --lines) {
    const GlyphPoint from = {random.Uniform(0, Canvas::kSide), random.Uniform(0, Canvas::kSide)};
    const GlyphPoint to = from + GlyphPoint{random.Uniform(-kStrayReach, kStrayReach),
                                            random.Uniform(-kStrayReach, kStrayReach)};
    const float radius = random.Uniform(kRadiusMin, 1.0f);
    canvas.DrawLine(from, to, radius, random.Uniform(kInkMin, 1.0f));
  }
}

/// A position between two pixels of the canvas, as the first of them and the share of the second.
struct Between {
  size_t first = 0;
  float share = 0;
};

/// Returns where on the canvas each of `count` pixels lies that are spread over one of its sides.
std::vector<Between> Spread(uint32_t count) {
  std::vector<Between> places(count);
  const float step = static_cast<float>(Canvas::kSide) / static_cast<float>(count);
  for (uint32_t i = 0; i < count; ++i) {
    const float middle = (static_cast<float>(i) + 0.5f) * step - 0.5f;
    const float place = std::clamp(middle, 0.0f, Canvas::kSide - 1.0f);
    const size_t first = std::min(static_cast<size_t>(place), size_t{Canvas::kSide} - 2);
    places[i] = {first, place - static_cast<float>(first)};
  }
  return places;
}

/// Returns the canvas's ink, stretched to this size by bilinear interpolation. At the canvas's own
/// size it is unchanged.
std::vector<float> Stretch(const Canvas& canvas, uint32_t height, uint32_t width) {
  const std::vector<Between> rows = Spread(height);
  const std::vector<Between> columns = Spread(width);
  const auto mix = [](float a, float b, float share) { return (1 - share) * a + share * b; };
  std::vector<float> ink;
  ink.reserve(size_t{height} * width);
  for (const Between& row : rows) {
    const float* upper = &canvas.pixels()[row.first * Canvas::kSide];
    const float* lower = upper + Canvas::kSide;
    for (const Between& column : columns) {
      const size_t x = column.first;
      ink.push_back(mix(mix(upper[x], upper[x + 1], column.share),
                        mix(lower[x], lower[x + 1], column.share), row.share));
    }
  }
  return ink;
}

/// Puts the ink on paper of an even grey, and adds noise: the sum of the two uniform numbers that
/// one random word holds.
void Expose(std::span<const float> ink, RandomStream& random, std::span<uint8_t> pixels) {
  const float paper = random.Uniform(0, kPaperMax);
  const float noise = random.Uniform(0, kNoiseMax);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const uint32_t word = random.NextWord();
    const float unit = static_cast<float>((word & 0xffff) + (word >> 16)) * 0x1p-16f - 1;
    const float grey = paper + (1 - paper) * ink[i] + noise * unit;
    pixels[i] = static_cast<uint8_t>(std::lround(std::clamp(grey, 0.0f, 1.0f) * 255));
  }
}

void DrawExample(const ExampleShape& shape, uint64_t seed, Split split, uint32_t index,
                 std::span<uint8_t> pixels) {
  RandomStream random(seed, kExampleStreams | static_cast<uint64_t>(split) << 48 | index);
  const Distortion distortion(random);
  const float radius = random.Uniform(kRadiusMin, kRadiusMax);
  const float ink = random.Uniform(kInkMin, 1.0f);

  Canvas canvas;
  for (const GlyphStroke& stroke : GlyphStrokes(index % kClasses)) {
    DrawStroke(stroke, distortion, radius, ink, canvas);
  }
  DrawStrayLines(random, canvas);
  const std::vector<float> stretched = Stretch(canvas, shape.height, shape.width);
  for (size_t channel = 0; channel < shape.channels; ++channel) {
    Expose(stretched, random, pixels.subspan(channel * stretched.size(), stretched.size()));
  }
}

absl::StatusOr<RawExamples> DrawSplit(const ExampleShape& shape, uint64_t seed, Split split,
                                      uint32_t count, const ReadProgress& progress) {
  RawExamples examples;
  examples.shape = shape;
  Bytes pixels(count * shape.elements());
  examples.labels.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / count;
    if (progress && i % kExamplesPerReport == 0 && !progress(kSyntheticName, share)) {
      return absl::CancelledError("stopped");
    }
    DrawExample(shape, seed, split, i,
                std::span(pixels).subspan(i * shape.elements(), shape.elements()));
    examples.labels[i] = static_cast<uint8_t>(i % kClasses);
  }
  examples.pixels = ByteRows::Of(SharedBytes(std::move(pixels)));
  return examples;
}

}  // namespace

absl::StatusOr<RawSplits> GenerateSynthetic(const ExampleShape& shape, uint64_t seed,
                                            uint32_t train_examples, uint32_t test_examples,
                                            const ReadProgress& progress) {
  const uint64_t bytes = (uint64_t{train_examples} + test_examples) * shape.elements();
  if (absl::Status memory = CheckMemory(kSyntheticName, bytes); !memory.ok()) return memory;
  absl::StatusOr<RawExamples> train =
      DrawSplit(shape, seed, Split::kTrain, train_examples, progress);
  if (!train.ok()) return train.status();
  absl::StatusOr<RawExamples> test = DrawSplit(shape, seed, Split::kTest, test_examples, progress);
  if (!test.ok()) return test.status();
  return RawSplits{*std::move(train), *std::move(test)};
}

}  // namespace slipstream
