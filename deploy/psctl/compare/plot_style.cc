#include "deploy/psctl/compare/plot_style.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>

namespace slipstream {
namespace {

/// The colour of a group on a light page and on a dark one.
struct GroupColor {
  std::string_view light;
  std::string_view dark;
};
constexpr std::array kColors = {
    GroupColor{"#0072b2", "#5ab4f0"}, GroupColor{"#d55e00", "#ff9a55"},
    GroupColor{"#009e73", "#3ad6a8"}, GroupColor{"#b8568f", "#ec9fc9"},
    GroupColor{"#8a6d00", "#e3c452"}, GroupColor{"#555555", "#bdbdbd"},
};

// The classes that follow a colour which repeats: .again, .third, .fourth.
constexpr std::array<std::string_view, 4> kDashes = {"", " again", " third", " fourth"};

/// The corners of a mark around its centre; a dot if there are none.
struct MarkShape {
  size_t count = 0;
  std::array<CurvePoint, 4> corners = {};
};

// There are not as many shapes as colours, so that a colour that repeats has another mark.
constexpr std::array kShapes = {
    MarkShape{},
    MarkShape{4, {{{-3.4, -3.4}, {3.4, -3.4}, {3.4, 3.4}, {-3.4, 3.4}}}},
    MarkShape{3, {{{0, -4.4}, {4.1, 3.4}, {-4.1, 3.4}}}},
    MarkShape{4, {{{0, -4.8}, {4.8, 0}, {0, 4.8}, {-4.8, 0}}}},
    MarkShape{3, {{{0, 4.4}, {4.1, -3.4}, {-4.1, -3.4}}}},
};

}  // namespace

std::string PlotColor(size_t group) {
  const size_t round = group / kColors.size() % kDashes.size();
  return fmt::format("{}{}", group % kColors.size(), kDashes.at(round));
}

void DrawMark(SvgDocument& document, CurvePoint center, size_t group) {
  auto [count, corners] = kShapes.at(group % kShapes.size());
  const std::string classes = "fill-" + PlotColor(group);
  if (count == 0) return document.Dot(center, 3.4, classes);
  for (CurvePoint& corner : corners) corner = {center.x + corner.x, center.y + corner.y};
  document.Polygon(std::span(corners).first(count), classes);
}

void DrawLegendLine(SvgDocument& document, CurvePoint left, size_t group, std::string_view text) {
  constexpr double kWidth = 36;
  const CurvePoint ends[] = {left, {left.x + kWidth, left.y}};
  document.Polyline(ends, "line stroke-" + PlotColor(group));
  DrawMark(document, {left.x + kWidth / 2, left.y}, group);
  document.Text({left.x + kWidth + 8, left.y + 4}, text, "legend");
}

std::string PlotStyleSheet() {
  std::string light;
  std::string dark;
  for (size_t i = 0; i < kColors.size(); ++i) {
    constexpr std::string_view kRule =
        ".stroke-{0} {{ stroke: {1}; }} .fill-{0} {{ fill: {1}; }}\n";
    light += fmt::format(kRule, i, kColors[i].light);
    dark += fmt::format(kRule, i, kColors[i].dark);
  }
  return fmt::format(
      ".page {{ fill: #ffffff; }}\n"
      "text {{ font: 12px system-ui, sans-serif; fill: #222222; }}\n"
      ".title {{ font-weight: 600; font-size: 14px; }}\n"
      ".legend {{ font-size: 13px; }}\n.middle {{ text-anchor: middle; }}\n.right {{ text-anchor: "
      "end; }}\n"
      ".grid {{ stroke: #dddddd; }}\n.axis {{ stroke: #888888; }}\n"
      ".line {{ fill: none; stroke-width: 1.8; stroke-linejoin: round; }}\n"
      ".small {{ font-size: 10.5px; }}\n"
      ".again {{ stroke-dasharray: 9 3; }}\n.third {{ stroke-dasharray: 2 3; }}\n"
      ".fourth {{ stroke-dasharray: 9 3 2 3; }}\n.column {{ fill-opacity: 0.45; }}\n"
      ".interval {{ stroke-width: 1; stroke-opacity: 0.7; stroke-dasharray: none; }}\n"
      ".stroke-ideal {{ stroke: #888888; stroke-dasharray: 4 4; }}\n{}"
      "@media (prefers-color-scheme: dark) {{\n"
      ".page {{ fill: #15181d; }}\ntext {{ fill: #dddddd; }}\n"
      ".grid {{ stroke: #333a44; }}\n.axis {{ stroke: #8a919c; }}\n{}}}\n",
      light, dark);
}

}  // namespace slipstream
