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
#include "deploy/psctl/compare/svg_document.h"
#include "deploy/psctl/status/staleness_histogram.h"

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

/// Returns the sums of `width` neighbouring counts, for `columns` columns, in percent of all
/// counts.
std::vector<double> Columns(const std::vector<uint64_t>& counts, size_t width, size_t columns) {
  const double total = static_cast<double>(std::reduce(counts.begin(), counts.end()));
  std::vector<double> percent(columns);
  const size_t shown = std::min(counts.size(), width * columns);
  for (size_t i = 0; i < shown && total > 0; ++i) {
    percent.at(i / width) += 100 * static_cast<double>(counts[i]) / total;
  }
  return percent;
}

/// Returns the end of the axis of staleness: that of the longest distribution; 0 if nothing was
/// counted.
size_t StalenessEnd(const std::vector<PlotGroup>& groups) {
  size_t end = 0;
  for (const PlotGroup& group : groups) end = std::max(end, DistributionEnd(group.staleness));
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
  const size_t width = std::max<size_t>(1, (end + kColumnsMax - 1) / kColumnsMax);
  const size_t columns = std::max<size_t>(1, (end + width - 1) / width);
  // The scale begins at -0.5, so that with a width of 1 each staleness is in the middle of its
  // column.
  ChartScale x = ChartScale::Around(0, static_cast<double>(columns * width), kTicks, 1);
  x.low = -0.5;
  x.high = static_cast<double>(columns * width) - 0.5;
  std::erase_if(x.ticks, [&](double tick) { return tick > x.high; });
  const std::string label = StalenessLabel(groups, columns * width);
  Chart chart(
      document, box,
      {.title = "Staleness: share of gradients, and of all up to it", .x = label, .y_unit = "%"}, x,
      ChartScale::Around(0, 100, kTicks));
  if (end == 0) return chart.DrawNote("nothing was measured");
  const double share = 0.8 * static_cast<double>(width) / static_cast<double>(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::vector<double> percent = Columns(groups[i].staleness, width, columns);
    Curve distribution;
    double up_to = 0;
    for (size_t column = 0; column < columns; ++column) {
      const double begin = static_cast<double>(column * width) - 0.5;
      const double left = begin + 0.1 * static_cast<double>(width) + share * static_cast<double>(i);
      if (percent[column] > 0) chart.DrawColumn(left, left + share, percent[column], PlotColor(i));
      up_to += percent[column];
      distribution.push_back({begin, up_to});
      distribution.push_back({begin + static_cast<double>(width), up_to});
    }
    if (up_to > 0) chart.DrawLine(distribution, PlotColor(i));
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
    DrawSign(document, {kMargin, y}, 24, i);
    document.Text({kMargin + 32, y + 4}, LegendText(groups[i]), "legend");
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
