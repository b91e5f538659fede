#include "deploy/psctl/compare/run_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "deploy/psctl/compare/chart.h"
#include "deploy/psctl/compare/chart_scale.h"
#include "deploy/psctl/compare/plot_style.h"
#include "deploy/psctl/compare/staleness_columns.h"
#include "deploy/psctl/compare/svg_document.h"

namespace slipstream {
namespace {

constexpr double kChartWidth = 480;
constexpr double kChartHeight = 300;
constexpr double kMargin = 16;
constexpr double kLegendLine = 22;
constexpr int kTicks = 5;

// A longer label would not fit on the page.
constexpr size_t kLabelBytesMax = 120;

// If there are more values of staleness, neighbouring ones share a column.
constexpr size_t kColumnsMax = 64;

// A curve with more points has no dots, because they would hide its line.
constexpr size_t kDotsMax = 30;

using CurveOf = Curve RunCurves::*;

/// Calls `use` for every point of this curve of all runs.
template <typename Use>
void ForEachPoint(const std::vector<PlotGroup>& groups, CurveOf curve, Use use) {
  for (const PlotGroup& group : groups) {
    for (const RunCurves& run : group.runs) std::ranges::for_each(run.*curve, use);
  }
}

/// Draws a chart of one curve of every run, with values multiplied by `factor`. The y axis begins
/// at 0 if `begins_at_zero` is set, and else near the least value. Curves of accuracy mark the ends
/// of runs that diverged.
void DrawCurves(SvgDocument& document, const ChartBox& box, const Chart::Labels& labels,
                const std::vector<PlotGroup>& groups, CurveOf curve, double factor,
                bool begins_at_zero) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool marks_ends =
      curve == &RunCurves::accuracy_by_time || curve == &RunCurves::accuracy_by_epoch;
  double x_max = 0;
  double low = begins_at_zero ? 0 : kInfinity;
  double high = begins_at_zero ? 0 : -kInfinity;
  bool has_points = false;
  ForEachPoint(groups, curve, [&](const CurvePoint& point) {
    x_max = std::max(x_max, point.x);
    low = std::min(low, factor * point.y);
    high = std::max(high, factor * point.y);
    has_points = true;
  });
  if (!has_points) low = high = 0;
  Chart chart(document, box, labels, ChartScale::Around(0, x_max, kTicks),
              ChartScale::Around(low, high, kTicks));
  if (!has_points) return chart.DrawNote("nothing was measured");
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const RunCurves& run : groups[i].runs) {
      Curve scaled = run.*curve;
      for (CurvePoint& point : scaled) point.y *= factor;
      chart.DrawLine(scaled, PlotColor(i));
      if (scaled.size() <= kDotsMax) chart.DrawMarks(scaled, i);
      if (run.ends_diverged && marks_ends) chart.DrawCross(scaled.back(), PlotColor(i));
    }
  }
}

/// Returns the end of the axis of staleness: that of the longest distribution; 0 if nothing was
/// counted.
size_t StalenessEnd(const std::vector<PlotGroup>& groups) {
  size_t end = 0;
  for (const PlotGroup& group : groups)
    end = std::max(end, StalenessColumns::EndOf(group.staleness));
  return end;
}

/// Returns "staleness σ, in updates", and what lies beyond the end of the axis, such as
/// "; 0.04% beyond, up to 60".
std::string StalenessLabel(const std::vector<PlotGroup>& groups, size_t end) {
  double most = 0;
  size_t largest = 0;
  for (const PlotGroup& group : groups) {
    const std::span<const uint64_t> counts = group.staleness;
    const auto total = static_cast<double>(std::reduce(counts.begin(), counts.end()));
    uint64_t beyond = 0;
    for (size_t sigma = end; sigma < counts.size(); ++sigma) {
      beyond += counts[sigma];
      if (counts[sigma] > 0) largest = std::max(largest, sigma);
    }
    if (beyond > 0) most = std::max(most, static_cast<double>(beyond) / total);
  }
  const std::string label = "staleness σ, in updates";
  if (largest == 0) return label;
  return fmt::format("{}; {}{:.2g}% lie beyond, up to {}", label,
                     groups.size() > 1 ? "at most " : "", 100 * most, largest);
}

void DrawStaleness(SvgDocument& document, const ChartBox& box,
                   const std::vector<PlotGroup>& groups) {
  const size_t end = StalenessEnd(groups);
  const StalenessColumns columns(end, kColumnsMax);
  const std::string label = StalenessLabel(groups, columns.end());
  Chart chart(
      document, box,
      {.title = "Staleness: share of gradients, and of all up to it", .x = label, .y_unit = "%"},
      columns.Scale(kTicks), ChartScale::Around(0, 100, kTicks));
  if (end == 0) return chart.DrawNote("nothing was measured");
  for (size_t i = 0; i < groups.size(); ++i) {
    columns.Draw(chart, columns.Percent(groups[i].staleness), i, groups.size(), 1, PlotColor(i));
  }
}

std::string LegendText(const PlotGroup& group) {
  const std::string_view label = CutUtf8(group.label, kLabelBytesMax);
  const size_t runs = group.runs.size();
  return fmt::format("{}{}{}{}", label, label.size() < group.label.size() ? "…" : "",
                     runs > 1 ? fmt::format(" ({} runs)", runs) : "",
                     group.note.empty() ? "" : ": " + group.note);
}

void DrawLegend(SvgDocument& document, const std::vector<PlotGroup>& groups) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const double y = kMargin + kLegendLine * (static_cast<double>(i) + 0.5);
    DrawLegendLine(document, {kMargin, y}, i, LegendText(groups[i]));
  }
}

}  // namespace

std::string PlotRuns(const std::vector<PlotGroup>& groups) {
  PS_CHECK(!groups.empty());
  bool has_accuracy = false;
  ForEachPoint(groups, &RunCurves::accuracy_by_time,
               [&](const CurvePoint&) { has_accuracy = true; });
  const std::string measured = has_accuracy ? "Test accuracy" : "Test loss";
  const double legend = kMargin + kLegendLine * static_cast<double>(groups.size());
  const double page_width = 2 * (kChartWidth + kMargin);
  const double page_height = legend + 2 * kChartHeight + kMargin;
  SvgDocument document(page_width, page_height, "Runs of Slipstream: " + groups.front().label,
                       PlotStyleSheet());
  document.Rectangle({0, 0}, page_width, page_height, "page");
  DrawLegend(document, groups);

  const auto box = [&](int column, int row) {
    return ChartBox{{kMargin / 2 + column * (kChartWidth + kMargin), legend + row * kChartHeight},
                    kChartWidth,
                    kChartHeight};
  };
  const double factor = has_accuracy ? 100 : 1;
  const std::string unit = has_accuracy ? "%" : "";
  DrawCurves(document, box(0, 0),
             {.title = measured + " over time", .x = "seconds of training", .y_unit = unit}, groups,
             has_accuracy ? &RunCurves::accuracy_by_time : &RunCurves::loss_by_time, factor,
             /*begins_at_zero=*/false);
  DrawCurves(document, box(1, 0),
             {.title = measured + " over epochs", .x = "epochs", .y_unit = unit}, groups,
             has_accuracy ? &RunCurves::accuracy_by_epoch : &RunCurves::loss_by_epoch, factor,
             /*begins_at_zero=*/false);
  DrawStaleness(document, box(0, 1), groups);
  DrawCurves(document, box(1, 1),
             {.title = "Examples per second", .x = "seconds of training", .y_unit = ""}, groups,
             &RunCurves::rate_by_time, 1, /*begins_at_zero=*/true);
  return std::move(document).Finish();
}

}  // namespace slipstream
