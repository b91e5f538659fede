#include "worker/data/glyphs.h"

#include <array>

#include "common/base/check.h"

namespace slipstream {
namespace {

constexpr GlyphPoint kZeroRing[] = {{0.0f, -0.9f}, {0.5f, -0.45f}, {0.5f, 0.45f},
                                    {0.0f, 0.9f},  {-0.5f, 0.45f}, {-0.5f, -0.45f}};
constexpr GlyphPoint kOneFlag[] = {{-0.35f, -0.5f}, {0.05f, -0.9f}};
constexpr GlyphPoint kOneStem[] = {{0.05f, -0.9f}, {0.05f, 0.9f}};
constexpr GlyphPoint kTwoNeck[] = {
    {-0.5f, -0.5f}, {-0.05f, -0.9f}, {0.48f, -0.5f}, {0.15f, 0.15f}, {-0.5f, 0.9f}};
constexpr GlyphPoint kTwoBase[] = {{-0.5f, 0.9f}, {0.55f, 0.9f}};
constexpr GlyphPoint kThreeTop[] = {
    {-0.45f, -0.75f}, {0.1f, -0.9f}, {0.42f, -0.5f}, {-0.1f, -0.08f}};
constexpr GlyphPoint kThreeBottom[] = {{-0.1f, -0.08f}, {0.5f, 0.35f}, {0.1f, 0.9f}, {-0.5f, 0.7f}};
constexpr GlyphPoint kFourSlope[] = {{0.2f, -0.9f}, {-0.55f, 0.3f}};
constexpr GlyphPoint kFourBar[] = {{-0.55f, 0.3f}, {0.6f, 0.3f}};
constexpr GlyphPoint kFourStem[] = {{0.2f, -0.9f}, {0.2f, 0.9f}};
constexpr GlyphPoint kFiveTop[] = {{0.45f, -0.9f}, {-0.4f, -0.9f}};
constexpr GlyphPoint kFiveStem[] = {{-0.4f, -0.9f}, {-0.45f, -0.1f}};
constexpr GlyphPoint kFiveBelly[] = {
    {-0.45f, -0.1f}, {0.15f, -0.22f}, {0.5f, 0.3f}, {0.1f, 0.88f}, {-0.5f, 0.72f}};
constexpr GlyphPoint kSixHook[] = {{0.38f, -0.85f}, {-0.25f, -0.4f}, {-0.5f, 0.3f}, {0.0f, 0.9f},
                                   {0.48f, 0.4f},   {0.05f, 0.0f},   {-0.45f, 0.4f}};
constexpr GlyphPoint kSevenTop[] = {{-0.5f, -0.9f}, {0.5f, -0.9f}};
constexpr GlyphPoint kSevenStem[] = {{0.5f, -0.9f}, {0.0f, 0.05f}, {-0.15f, 0.9f}};
constexpr GlyphPoint kEightRings[] = {{0.0f, -0.08f},  {0.42f, -0.5f}, {0.0f, -0.9f},
                                      {-0.42f, -0.5f}, {0.0f, -0.08f}, {0.48f, 0.42f},
                                      {0.0f, 0.9f},    {-0.48f, 0.42f}};
constexpr GlyphPoint kNineHook[] = {{0.45f, -0.45f}, {0.0f, -0.05f}, {-0.45f, -0.45f},
                                    {0.0f, -0.9f},   {0.45f, -0.4f}, {0.35f, 0.3f},
                                    {-0.2f, 0.88f}};

constexpr GlyphStroke kZero[] = {{kZeroRing, true}};
constexpr GlyphStroke kOne[] = {{kOneFlag}, {kOneStem}};
constexpr GlyphStroke kTwo[] = {{kTwoNeck}, {kTwoBase}};
constexpr GlyphStroke kThree[] = {{kThreeTop}, {kThreeBottom}};
constexpr GlyphStroke kFour[] = {{kFourSlope}, {kFourBar}, {kFourStem}};
constexpr GlyphStroke kFive[] = {{kFiveTop}, {kFiveStem}, {kFiveBelly}};
constexpr GlyphStroke kSix[] = {{kSixHook}};
constexpr GlyphStroke kSeven[] = {{kSevenTop}, {kSevenStem}};
constexpr GlyphStroke kEight[] = {{kEightRings, true}};
constexpr GlyphStroke kNine[] = {{kNineHook}};

constexpr std::array<std::span<const GlyphStroke>, 10> kDigits = {
    kZero, kOne, kTwo, kThree, kFour, kFive, kSix, kSeven, kEight, kNine};

}  // namespace

std::span<const GlyphStroke> GlyphStrokes(uint32_t digit) {
  PS_CHECK(digit < kDigits.size());
  return kDigits[digit];
}

GlyphPoint CurvePoint(GlyphPoint a, GlyphPoint b, GlyphPoint c, GlyphPoint d, float share) {
  const GlyphPoint slope_b = 0.5f * (c - a);
  const GlyphPoint slope_c = 0.5f * (d - b);
  const GlyphPoint chord = c - b;
  const GlyphPoint square = 3.0f * chord - 2.0f * slope_b - slope_c;
  const GlyphPoint cube = slope_b + slope_c - 2.0f * chord;
  return b + share * (slope_b + share * (square + share * cube));
}

}  // namespace slipstream
