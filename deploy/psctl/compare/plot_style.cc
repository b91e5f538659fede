#include "deploy/psctl/compare/plot_style.h"

#include <fmt/format.h>

#include <array>
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

}  // namespace

std::string PlotColor(size_t group) {
  return fmt::format("{}{}", group % kColors.size(), group < kColors.size() ? "" : " again");
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
      ".interval {{ stroke-width: 1; stroke-opacity: 0.7; }}\n.small {{ font-size: 10.5px; }}\n"
      ".again {{ stroke-dasharray: 6 3; }}\n.column {{ fill-opacity: 0.45; }}\n{}"
      "@media (prefers-color-scheme: dark) {{\n"
      ".page {{ fill: #15181d; }}\ntext {{ fill: #dddddd; }}\n"
      ".grid {{ stroke: #333a44; }}\n.axis {{ stroke: #8a919c; }}\n{}}}\n",
      light, dark);
}

}  // namespace slipstream
