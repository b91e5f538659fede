#include "deploy/psctl/lab/lab_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "deploy/psctl/compare/chart.h"
#include "deploy/psctl/compare/chart_scale.h"
#include "deploy/psctl/compare/plot_style.h"
#include "deploy/psctl/compare/staleness_columns.h"
#include "deploy/psctl/compare/svg_document.h"

namespace slipstream {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 360;
constexpr double kLegendLine = 18;

// The plot with a text beside each point is as wide as two others.
constexpr double kWideWidth = 1300;
constexpr double kWideHeight = 520;

// The space to the right of a chart, for its last label.
constexpr double kRight = 12;
constexpr int kTicks = 6;

// Longer legends would bury their plot; the tables name the points.
constexpr size_t kLegendMax = 12;

// Small plots of staleness.
constexpr double kSmallWidth = 310;
constexpr double kSmallHeight = 210;
constexpr size_t kColumnsMax = 40;

/// A point of a plot with the interval of its mean.
struct Mark {
  double x = 0;
  MeanInterval y;
};

/// Marks of one colour; `is_line` if they are a curve.
struct Series {
  size_t color = 0;
  bool is_line = true;
  std::vector<Mark> marks;
  std::vector<std::string> labels = {};  // Beside each mark; may be empty.
};

struct PlotSpec {
  std::string title;
  std::string x;
  std::string y_unit;
  std::vector<std::pair<size_t, std::string>> legend;  // Colour and text.
  std::vector<Series> series;

  /// A line to compare with.
  Curve ideal = {};
  bool begins_at_zero = false;
  bool is_wide = false;
  std::vector<std::pair<double, std::string>> x_ticks = {};  // Empty: numbers.
};

/// Returns the element of a document, for a page that has other elements, too.
std::string Element(SvgDocument document) {
  std::string text = std::move(document).Finish();
  const size_t style = text.find("<style>");
  const size_t end = text.find("</style>\n") + std::string_view("</style>\n").size();
  text.erase(style, end - style);
  return text.substr(text.find("<svg"));
}

ChartScale XScale(const PlotSpec& spec) {
  double low = spec.x_ticks.empty() ? 0 : spec.x_ticks.front().first;
  double high = spec.x_ticks.empty() ? 0 : spec.x_ticks.back().first;
  for (const Series& series : spec.series) {
    for (const Mark& mark : series.marks) high = std::max(high, mark.x);
  }
  if (spec.x_ticks.empty()) return ChartScale::Around(low, high, kTicks);
  const double margin = (high - low) / 12 + (high == low ? 1 : 0);
  ChartScale scale = {.low = low - margin, .high = high + margin, .ticks = {}};
  for (const auto& [tick, label] : spec.x_ticks) {
    scale.ticks.push_back(tick);
    scale.labels.push_back(label);
  }
  return scale;
}

ChartScale YScale(const PlotSpec& spec) {
  std::vector<double> values;
  for (const Series& series : spec.series) {
    for (const Mark& mark : series.marks) {
      values.push_back(mark.y.mean - mark.y.half_width.value_or(0));
      values.push_back(mark.y.mean + mark.y.half_width.value_or(0));
    }
  }
  if (spec.begins_at_zero) values.push_back(0);
  const auto [low, high] = std::ranges::minmax(values);
  // Intervals of few seeds may reach below any error.
  return ChartScale::Around(std::max(low, 0.0), std::max(high, 0.0), kTicks);
}

std::string Draw(const PlotSpec& spec) {
  const size_t lines = spec.legend.size() <= kLegendMax ? spec.legend.size() : 0;
  const double legend = kLegendLine * static_cast<double>(lines);
  const double width = spec.is_wide ? kWideWidth : kWidth;
  const double height = spec.is_wide ? kWideHeight : kHeight;
  SvgDocument document(width, height + legend, spec.title, "");
  for (size_t i = 0; i < lines; ++i) {
    const double y = kLegendLine * (static_cast<double>(i) + 0.5);
    DrawLegendLine(document, {64, y}, spec.legend[i].first, spec.legend[i].second);
  }
  Chart chart(document, {{0, legend}, width - kRight, height},
              {.title = spec.title, .x = spec.x, .y_unit = spec.y_unit}, XScale(spec),
              YScale(spec));
  if (!spec.ideal.empty()) chart.DrawLine(spec.ideal, kIdealColor);
  for (const Series& series : spec.series) {
    const std::string color = PlotColor(series.color);
    Curve curve;
    for (const Mark& mark : series.marks) curve.push_back({mark.x, mark.y.mean});
    if (series.is_line) chart.DrawLine(curve, color);
    chart.DrawMarks(curve, series.color);
    for (const Mark& mark : series.marks) {
      if (!mark.y.half_width || *mark.y.half_width == 0) continue;
      chart.DrawInterval(mark.x, mark.y.mean - *mark.y.half_width, mark.y.mean + *mark.y.half_width,
                         color);
    }
  }
  // The texts come last, so that each finds a place.
  for (const Series& series : spec.series) {
    for (size_t i = 0; i < series.labels.size(); ++i) {
      chart.DrawText({series.marks[i].x, series.marks[i].y.mean}, series.labels[i]);
    }
  }
  return Element(std::move(document));
}

/// The colours of points, and what they mean.
class Coloring {
 public:
  explicit Coloring(const LabReport& report) : report_(report) {
    for (const PointResult& point : report.points)
      products_[MuLambdaGroup(point.cell->settings)] = 0;
    size_t color = 0;
    for (auto& [product, index] : products_) index = color++;
  }

  size_t Of(const PointResult& point) const {
    if (has_products()) return products_.at(MuLambdaGroup(point.cell->settings));
    return static_cast<size_t>(&point - report_.points.data());
  }

  std::vector<std::pair<size_t, std::string>> Legend() const {
    std::vector<std::pair<size_t, std::string>> legend;
    if (has_products()) {
      for (const auto& [product, index] : products_) {
        legend.emplace_back(index, fmt::format("μλ ≈ {}", product));
      }
      return legend;
    }
    for (const PointResult& point : report_.points) {
      legend.emplace_back(Of(point), CellLabel(report_.cells->axes, point.cell->values));
    }
    return legend;
  }

  bool has_products() const { return products_.size() > 1; }
  const std::map<uint64_t, size_t>& products() const { return products_; }

 private:
  const LabReport& report_;
  std::map<uint64_t, size_t> products_;  // The colour of each group of μλ.
};

/// Returns the means over seeds of a point's measurements, by time or by epoch. Some seeds have
/// more of them: an epoch's mean is over those that have measured it.
std::vector<Mark> MeanCurve(const PointResult& point, bool by_time) {
  struct At {
    std::vector<double> x;  // They differ a little from seed to seed.
    std::vector<double> errors;
  };
  // By the epoch, and by the number within it: the final one may be the second of its epoch.
  std::map<std::pair<double, size_t>, At> measurements;
  for (const CellResult* result : point.results) {
    std::map<double, size_t> of_epoch;
    for (const Measurement& one : result->curves.measurements) {
      At& at = measurements[{one.epoch, of_epoch[one.epoch]++}];
      at.x.push_back(by_time ? one.time : one.epochs_measured);
      at.errors.push_back(1 - one.accuracy);
    }
  }
  std::vector<Mark> marks;
  for (const auto& [epoch, at] : measurements) {
    marks.push_back({.x = MeanOf(at.x).mean, .y = MeanOf(at.errors).Times(100)});
  }
  return marks;
}

/// Adds a plot, unless it has no marks.
void Add(PlotSpec spec, std::string caption, std::vector<LabPlot>& plots) {
  std::erase_if(spec.series, [](const Series& series) { return series.marks.empty(); });
  if (spec.series.empty()) return;
  plots.push_back({.svg = Draw(spec), .caption = std::move(caption)});
}

void AddErrorCurves(const LabReport& report, const Coloring& colors, bool by_time,
                    std::vector<LabPlot>& plots) {
  PlotSpec spec = {.title = fmt::format("Test error over {}", by_time ? "time" : "epochs"),
                   .x = std::string(by_time ? report.time_unit() : "epochs"),
                   .y_unit = "%",
                   .legend = colors.Legend(),
                   .series = {}};
  for (const PointResult& point : report.points) {
    spec.series.push_back({.color = colors.Of(point), .marks = MeanCurve(point, by_time)});
  }
  Add(std::move(spec),
      "Each line is the mean over the seeds of a point that have measured in an epoch; bars are 95 "
      "% "
      "confidence intervals.",
      plots);
}

/// Returns the numbers 1, 2 and 5 times powers of ten around a range, each with its logarithm.
std::vector<std::pair<double, std::string>> LogTicks(double low, double high) {
  std::vector<std::pair<double, std::string>> ticks;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * power;
      if (value < low / 2.5 || value > high * 2.5) continue;
      ticks.emplace_back(std::log10(value), fmt::format("{:g}", value));
    }
  }
  return ticks;
}

void AddSigmaMuLambda(const LabReport& report, const Coloring& colors,
                      std::vector<LabPlot>& plots) {
  PlotSpec spec = {.title = "(σ, μ, λ): test error against time",
                   .x = std::string(report.time_unit()) + " of training (logarithmic)",
                   .y_unit = "%",
                   .legend = colors.Legend(),
                   .series = {},
                   .is_wide = true};
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const PointResult& point : report.points) {
    std::vector<double> errors;
    for (const CellResult* result : point.results) {
      if (result->error && result->time) errors.push_back(*result->error);
    }
    const std::optional<MeanInterval> time = point.Mean(&CellResult::time);
    if (errors.empty() || time->mean <= 0) continue;
    least = std::min(least, time->mean);
    most = std::max(most, time->mean);
    spec.series.push_back({.color = colors.Of(point),
                           .is_line = false,
                           .marks = {{std::log10(time->mean), MeanOf(errors).Times(100)}},
                           .labels = {SigmaMuLambda(point)}});
  }
  if (most > 0) spec.x_ticks = LogTicks(least, most);
  Add(std::move(spec),
      "Each marker is a point of the grid: its staleness, mini-batch and number of workers. Down "
      "and to the left is better.",
      plots);
}

void AddMuLambda(const LabReport& report, const Coloring& colors, std::vector<LabPlot>& plots) {
  if (!colors.has_products()) return;
  PlotSpec spec = {.title = "μλ = const: test error by μλ",
                   .x = "μλ, the examples that all workers compute at a time",
                   .y_unit = "%",
                   .legend = {},
                   .series = {}};
  std::map<uint64_t, std::vector<double>> means;
  for (const PointResult& point : report.points) {
    const RunSpec& settings = point.cell->settings;
    const std::optional<MeanInterval> error = point.Mean(&CellResult::error);
    if (!error) continue;
    means[MuLambdaGroup(settings)].push_back(error->mean);
    spec.series.push_back(
        {.color = colors.Of(point),
         .is_line = false,
         .marks = {{std::log2(static_cast<double>(MuLambda(settings))), error->Times(100)}}});
  }
  for (const auto& [product, color] : colors.products()) {
    const double x = std::log2(static_cast<double>(product));
    spec.x_ticks.emplace_back(x, std::to_string(product));
    if (means.contains(product)) spec.ideal.push_back({x, 100 * MeanOf(means[product]).mean});
  }
  Add(std::move(spec),
      "Each dot is a point of the grid; the dashed line joins the means of groups with about the "
      "same "
      "μλ.",
      plots);
}

void AddSpeedUp(const LabReport& report, std::vector<LabPlot>& plots) {
  // The points that differ only in the number of workers, and in what follows it.
  std::map<std::string, std::map<double, MeanInterval>> rates;
  for (const PointResult& point : report.points) {
    std::string others;
    for (size_t i = 0; i < report.cells->axes.size(); ++i) {
      const CellValue& value = point.cell->values[i];
      if (value.key == "cluster.workers") continue;
      if (value.value.empty()) continue;
      const bool follows = value.written.starts_with('=');
      others += fmt::format("{}{}{}{}", others.empty() ? "" : ", ", report.cells->axes[i],
                            follows ? " = " : "=", value.written.substr(follows ? 1 : 0));
    }
    const std::optional<MeanInterval> rate = point.Mean(&CellResult::rate);
    if (rate && rate->mean > 0) rates[others][point.cell->settings.cluster.workers] = *rate;
  }
  double fewest = std::numeric_limits<double>::infinity();
  for (const auto& [name, by_workers] : rates) fewest = std::min(fewest, by_workers.begin()->first);
  // The fewest workers have one figure for all policies: one worker is the same under any policy.
  std::vector<double> bases;
  for (const auto& [name, by_workers] : rates) {
    if (by_workers.contains(fewest)) bases.push_back(by_workers.at(fewest).mean);
  }
  std::erase_if(rates, [](const auto& one) { return one.second.size() < 2; });
  if (rates.empty()) return;
  double most = fewest;
  double highest = 1;
  PlotSpec spec = {.title = fmt::format("Speed-up over λ = {}", fewest),
                   .x = "λ, workers",
                   .y_unit = "×",
                   .legend = {},
                   .series = {},
                   .begins_at_zero = true};
  for (const auto& [name, by_workers] : rates) {
    Series series = {.color = spec.series.size(), .marks = {}};
    const auto own = by_workers.find(fewest);
    const double base = own == by_workers.end() ? MeanOf(bases).mean : own->second.mean;
    for (const auto& [workers, rate] : by_workers) {
      const MeanInterval ratio = rate.Times(1 / base);
      series.marks.push_back({workers, ratio});
      most = std::max(most, workers);
      highest = std::max(highest, ratio.mean);
    }
    spec.legend.emplace_back(series.color, name.empty() ? "all" : name);
    spec.series.push_back(std::move(series));
  }
  // The ideal line ends where the plot does.
  const double end = std::min(most, fewest * highest);
  spec.ideal = {{fewest, 1}, {end, end / fewest}};
  Add(std::move(spec),
      fmt::format("Examples per {} over those of the fewest workers. The dashed line is the ideal.",
                  report.is_virtual() ? "virtual second" : "second"),
      plots);
}

LabPlot SigmaPlot(const LabReport& report, const PointResult& point, size_t color) {
  const std::vector<uint64_t> counts = point.Staleness();
  const double bound = 2 * EffectiveN(point.cell->settings);
  const size_t end = std::max(StalenessColumns::EndOf(counts), static_cast<size_t>(bound) + 1);
  const StalenessColumns columns(end, kColumnsMax);
  const std::vector<double> percent = columns.Percent(counts);
  const std::string label = CellLabel(report.cells->axes, point.cell->values);
  SvgDocument document(kSmallWidth, kSmallHeight, "Staleness of " + label, "");
  Chart chart(document, {{0, 0}, kSmallWidth - kRight, kSmallHeight},
              {.title = "(σ, μ, λ) = " + SigmaMuLambda(point),
               .x = "staleness σ, in updates",
               .y_unit = "%"},
              columns.Scale(5), ChartScale::Around(0, 100, 4));
  const double tallest = std::ranges::max(percent);
  columns.Draw(chart, percent, 0, 1, 100 / tallest, PlotColor(color));
  chart.DrawLine({{bound, 0}, {bound, 100}}, kIdealColor);
  chart.DrawText({bound, 12}, "2n");
  const std::optional<MeanInterval> mean = point.Mean(&CellResult::staleness_mean);
  const std::optional<MeanInterval> beyond = point.Mean(&CellResult::beyond_bound);
  return {.svg = Element(std::move(document)),
          .caption = fmt::format(
              "{}: ⟨σ⟩ {}, P(σ > {:.4g}) {}, tallest column {:.3g} %", label, MeanText(mean, 1, 2),
              bound, beyond ? fmt::format("{:.2g}", beyond->mean) : "unknown", tallest)};
}

}  // namespace

std::string SigmaMuLambda(const PointResult& point) {
  const RunSpec& spec = point.cell->settings;
  const ConsistencySpec& consistency = spec.consistency;
  const ParameterKeys& keys = RowOf(consistency.policy).parameters;
  const std::optional<MeanInterval> mean = point.Mean(&CellResult::staleness_mean);
  double sigma = mean ? std::round(mean->mean) : 0;
  if (std::ranges::count(keys, "n") > 0 && consistency.parameters.IsOn("n")) {
    sigma = consistency.parameters["n"];
  }
  return fmt::format("({}, {}, {})", sigma, spec.training.batch_size, spec.cluster.workers);
}

std::vector<LabPlot> LabPlots(const LabReport& report) {
  const Coloring colors(report);
  std::vector<LabPlot> plots;
  AddErrorCurves(report, colors, /*by_time=*/false, plots);
  AddErrorCurves(report, colors, /*by_time=*/true, plots);
  AddSigmaMuLambda(report, colors, plots);
  AddMuLambda(report, colors, plots);
  AddSpeedUp(report, plots);
  return plots;
}

std::vector<LabPlot> SigmaPlots(const LabReport& report) {
  const Coloring colors(report);
  std::vector<LabPlot> plots;
  for (const PointResult& point : report.points) {
    const std::vector<uint64_t> counts = point.Staleness();
    if (std::reduce(counts.begin(), counts.end()) == 0) continue;
    plots.push_back(SigmaPlot(report, point, colors.Of(point)));
  }
  return plots;
}

}  // namespace slipstream
