#include "deploy/psctl/prediction/run_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/check.h"
#include "common/json/json_number.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

double At(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

/// Returns the mean of a figure over the workers that have pushed.
double OverWorkers(const Json& summary, const char* key) {
  double sum = 0;
  double count = 0;
  if (!summary.contains("workers")) return 0;
  for (const Json& worker : summary["workers"]) {
    if (At(worker, "pushes") <= 0) continue;
    sum += At(worker, key);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

/// Returns the bytes of the servers, or of the busiest one.
double LargestOfServers(const Json& summary, const char* key) {
  double largest = 0;
  if (!summary.contains("servers")) return 0;
  for (const Json& server : summary["servers"]) largest = std::max(largest, At(server, key));
  return largest;
}

/// Returns the share of gradients with a staleness above `bound`; nothing if the histogram ends
/// before.
std::optional<double> ShareBeyond(const Json& summary, double bound) {
  const Json staleness = summary.value("staleness", Json::object());
  if (!staleness.contains("histogram") || !staleness["histogram"].is_array()) return std::nullopt;
  const auto& histogram = staleness["histogram"];
  if (At(staleness, "max") <= bound) return 0;
  double all = 0;
  double beyond = 0;
  for (size_t sigma = 0; sigma < histogram.size(); ++sigma) {
    const double count = histogram[sigma].is_number() ? histogram[sigma].get<double>() : 0;
    all += count;
    if (static_cast<double>(sigma) > bound) beyond += count;
  }
  if (all <= 0 || static_cast<double>(histogram.size()) <= bound) return std::nullopt;
  return beyond / all;
}

std::string ValueText(const CheckedFigure& figure, double value) {
  if (figure.is_share) return fmt::format("{:.2f}%", 100 * value);
  return CostText(figure.unit, value);
}

std::string DeviationText(const CheckedFigure& figure) {
  return fmt::format("{:+.1f}{}", 100 * figure.deviation, figure.is_share ? " points" : "%");
}

}  // namespace

absl::StatusOr<std::vector<CheckedFigure>> CheckRun(const Prediction& prediction,
                                                    std::string_view text) {
  const Json summary = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const double seconds = summary.is_object() ? At(summary, "seconds") : 0;
  const double pushes = summary.is_object() ? At(summary, "pushes") : 0;
  if (seconds <= 0 || pushes <= 0) {
    return absl::DataLossError("summary.json tells no time and no pushes of training");
  }
  // Pushes of workers that add up their gradients themselves are only those of copies.
  const double examples_of_step = prediction.examples_per_second * prediction.step;
  const double step = prediction.is_all_reduce
                          ? seconds * examples_of_step / std::max(1.0, At(summary, "examples"))
                          : prediction.workers * seconds / pushes;
  std::vector<CheckedFigure> figures;
  const auto add = [&figures](const char* name, CostUnit unit, double predicted, double measured) {
    if (predicted <= 0 && measured <= 0) return;
    const double deviation = predicted > 0 ? measured / predicted - 1 : 1;
    figures.push_back({name, unit, predicted, measured, deviation, false});
  };
  const auto add_share = [&figures](const char* name, double predicted, double measured) {
    figures.push_back({name, CostUnit::kPlain, predicted, measured, measured - predicted, true});
  };
  add("examples/s", CostUnit::kPlain, prediction.examples_per_second,
      At(summary, "examples") / seconds);
  add("step", CostUnit::kSeconds, prediction.step, step);
  add("computing in a step", CostUnit::kSeconds, prediction.overlap * prediction.step,
      OverWorkers(summary, "compute_share") * step);
  add_share("overlap, whole",
            prediction.overlap_whole ? *prediction.overlap_whole : prediction.overlap,
            OverWorkers(summary, "overlap"));
  const double steady = OverWorkers(summary, "steady_overlap");  // Older runs do not tell it.
  if (steady > 0) add_share("overlap, steady", prediction.overlap, steady);
  const Json staleness = summary.value("staleness", Json::object());
  add("mean staleness", CostUnit::kPlain, prediction.staleness, At(staleness, "mean"));
  if (const auto beyond = ShareBeyond(summary, 2 * prediction.effective_n)) {
    add_share("P(staleness > 2n)", prediction.staleness_beyond, *beyond);
  }
  if (prediction.is_all_reduce) return figures;
  add("updates/s", CostUnit::kPlain, prediction.updates_per_second,
      At(summary, "updates") / seconds);
  add("busiest server receives", CostUnit::kBytesPerSecond, prediction.server_bytes_in,
      LargestOfServers(summary, "pushed_bytes") / seconds);
  add("busiest server sends", CostUnit::kBytesPerSecond, prediction.server_bytes_out,
      LargestOfServers(summary, "pulled_bytes") / seconds);
  return figures;
}

const CheckedFigure& LargestDeviation(const std::vector<CheckedFigure>& figures) {
  PS_CHECK(!figures.empty());
  return *std::ranges::max_element(figures, {}, [](const CheckedFigure& figure) {
    if (figure.is_share) return std::fabs(figure.deviation);
    // Half as much is as far off as twice as much.
    return std::fabs(std::log(std::max(1e-9, 1 + figure.deviation)));
  });
}

std::string CheckText(const std::vector<CheckedFigure>& figures) {
  std::vector<TableRow> rows;
  for (const CheckedFigure& figure : figures) {
    rows.push_back({figure.name, ValueText(figure, figure.predicted),
                    ValueText(figure, figure.measured), DeviationText(figure)});
  }
  const CheckedFigure& largest = LargestDeviation(figures);
  return FormatTable({"", "predicted", "measured", "deviation"}, rows) +
         fmt::format("\nLargest deviation: {} ({}).\n", largest.name, DeviationText(largest));
}

Json CheckJson(const std::vector<CheckedFigure>& figures) {
  Json rows = Json::array();
  for (const CheckedFigure& figure : figures) {
    rows.push_back({{"name", figure.name},
                    {"predicted", NumberOrNull(figure.predicted)},
                    {"measured", NumberOrNull(figure.measured)},
                    {"deviation", NumberOrNull(figure.deviation)},
                    {"is_share", figure.is_share}});
  }
  return {{"figures", std::move(rows)}, {"largest", LargestDeviation(figures).name}};
}

}  // namespace slipstream
