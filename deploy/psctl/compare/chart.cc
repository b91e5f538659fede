#include "deploy/psctl/compare/chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "deploy/psctl/compare/plot_style.h"

namespace slipstream {
namespace {

// The space for labels on each side of the area of the data, in pixels.
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 32;
constexpr double kBottom = 46;

ChartBox AreaOf(const ChartBox& box) {
  return {{box.corner.x + kLeft, box.corner.y + kTop},
          box.width - kLeft - kRight,
          box.height - kTop - kBottom};
}

bool Overlap(const ChartBox& a, const ChartBox& b) {
  return a.corner.x < b.corner.x + b.width && b.corner.x < a.corner.x + a.width &&
         a.corner.y < b.corner.y + b.height && b.corner.y < a.corner.y + a.height;
}

}  // namespace

Chart::Chart(SvgDocument& document, const ChartBox& box, const Labels& labels, const ChartScale& x,
             const ChartScale& y)
    : document_(document), area_(AreaOf(box)), x_(x), y_(y) {
  const double bottom = area_.corner.y + area_.height;
  for (const double tick : y_.ticks) {
    const CurvePoint place = At(x_.low, tick);
    document_.Line(place, At(x_.high, tick), "grid");
    document_.Text({place.x - 8, place.y + 4}, fmt::format("{}{}", y_.Label(tick), labels.y_unit),
                   "right");
  }
  for (const double tick : x_.ticks) {
    const CurvePoint place = At(tick, y_.low);
    document_.Line(place, {place.x, place.y + 4}, "axis");
    document_.Text({place.x, place.y + 18}, x_.Label(tick), "middle");
  }
  document_.Line({area_.corner.x, bottom}, {area_.corner.x + area_.width, bottom}, "axis");
  document_.Text({area_.corner.x, area_.corner.y - 12}, labels.title, "title");
  document_.Text({area_.corner.x + area_.width / 2, bottom + 36}, labels.x, "middle");
}

CurvePoint Chart::At(double x, double y) const {
  const double right = std::clamp(x_.ShareOf(x), 0.0, 1.0);
  const double up = std::clamp(y_.ShareOf(y), 0.0, 1.0);
  return {area_.corner.x + right * area_.width, area_.corner.y + (1 - up) * area_.height};
}

void Chart::DrawLine(const Curve& curve, const std::string& color) {
  Curve places;
  for (const CurvePoint& point : curve) places.push_back(At(point.x, point.y));
  document_.Polyline(places, "line stroke-" + color);
}

void Chart::DrawMarks(const Curve& curve, size_t group) {
  for (const CurvePoint& point : curve) DrawMark(document_, At(point.x, point.y), group);
}

void Chart::DrawInterval(double x, double low, double high, const std::string& color) {
  const CurvePoint from = At(x, low);
  const CurvePoint to = At(x, high);
  constexpr double kCap = 3;
  const std::string classes = "interval stroke-" + color;
  document_.Line(from, to, classes);
  document_.Line({from.x - kCap, from.y}, {from.x + kCap, from.y}, classes);
  document_.Line({to.x - kCap, to.y}, {to.x + kCap, to.y}, classes);
}

void Chart::DrawText(const CurvePoint& point, std::string_view text) {
  constexpr double kGap = 6;
  constexpr double kLineHeight = 11;
  constexpr double kLetterWidth = 5.6;
  constexpr int kTries = 24;
  const CurvePoint place = At(point.x, point.y);
  const double width = kLetterWidth * static_cast<double>(text.size());
  ChartBox box = {{}, width, kLineHeight};
  bool is_right = true;
  double shift = 0;
  // Beside the point, to its right and left, then ever further above and below.
  for (int i = 0; i < kTries; ++i) {
    const int lines = (i / 2 + 1) / 2;
    shift = (i / 2 % 2 == 0 ? 1 : -1) * kLineHeight * lines;
    is_right = i % 2 == 0;
    box.corner = {is_right ? place.x + kGap : place.x - kGap - width,
                  place.y + shift - kLineHeight / 2};
    const bool fits = box.corner.x >= area_.corner.x &&
                      box.corner.x + width <= area_.corner.x + area_.width &&
                      box.corner.y >= area_.corner.y &&
                      box.corner.y + kLineHeight <= area_.corner.y + area_.height;
    if (fits &&
        std::ranges::none_of(texts_, [&](const ChartBox& other) { return Overlap(box, other); })) {
      break;
    }
  }
  texts_.push_back(box);
  const double x = place.x + (is_right ? kGap : -kGap);
  if (shift != 0) document_.Line(place, {x, place.y + shift}, "axis");
  document_.Text({x, place.y + shift + 4}, text, is_right ? "small" : "small right");
}

void Chart::DrawCross(CurvePoint point, const std::string& color) {
  constexpr double kHalf = 5;
  const auto [x, y] = At(point.x, point.y);
  document_.Line({x - kHalf, y - kHalf}, {x + kHalf, y + kHalf}, "line stroke-" + color);
  document_.Line({x - kHalf, y + kHalf}, {x + kHalf, y - kHalf}, "line stroke-" + color);
}

void Chart::DrawColumn(double x_begin, double x_end, double y, const std::string& color) {
  const CurvePoint top = At(x_begin, y);
  const CurvePoint bottom = At(x_end, y_.low);
  document_.Rectangle(top, bottom.x - top.x, bottom.y - top.y, "column fill-" + color);
}

void Chart::DrawNote(std::string_view note) {
  document_.Text({area_.corner.x + area_.width / 2, area_.corner.y + area_.height / 2}, note,
                 "middle");
}

}  // namespace slipstream
