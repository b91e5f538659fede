#include "deploy/psctl/lab/cell_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/status/statusor.h"
#include "common/model/net_shapes.h"
#include "deploy/psctl/compare/run_record.h"
#include "deploy/psctl/compare/summary_values.h"
#include "deploy/psctl/config/run_plan.h"
#include "deploy/psctl/run/directory.h"

namespace slipstream {
namespace {

using Json = nlohmann::json;

/// Returns the error of a guess; absent if the model predicts no classes.
std::optional<double> ErrorOfGuess(const RunSpec& spec) {
  const auto shapes = InferShapes(spec.model);
  const auto* const net = std::get_if<NetShapes>(&shapes);
  if (net == nullptr || spec.model.loss != ModelSpec::Loss::kCrossEntropy) return std::nullopt;
  return 1 - 1.0 / net->outputs();
}

/// Returns the share of gradients with a staleness above `bound`; absent if the last item has some
/// below it and some above.
std::optional<double> ShareBeyond(const std::vector<uint64_t>& counts, double bound,
                                  std::optional<double> max) {
  const double total = static_cast<double>(std::reduce(counts.begin(), counts.end()));
  if (total == 0) return std::nullopt;
  if (max && *max <= bound) return 0;
  const auto first = static_cast<size_t>(std::floor(bound)) + 1;
  if (first >= counts.size()) return std::nullopt;
  const auto beyond =
      std::reduce(counts.begin() + static_cast<std::ptrdiff_t>(first), counts.end());
  return static_cast<double>(beyond) / total;
}

void TakeSummary(const Json& summary, GridEngine engine, CellResult& result) {
  const bool is_virtual = engine == GridEngine::kVirtual;
  result.ended_by = TextAt(summary, "/ended_by");
  result.test_loss = NumberAt(summary, "/test_loss");
  if (const auto accuracy = NumberAt(summary, "/test_accuracy")) result.error = 1 - *accuracy;
  result.time = NumberAt(summary, is_virtual ? "/virtual_seconds" : "/seconds");
  result.rate =
      NumberAt(summary, is_virtual ? "/examples_per_virtual_second" : "/examples_per_second");
  result.epochs = NumberAt(summary, "/epochs");
  result.updates = NumberAt(summary, "/updates");
  result.pushes = NumberAt(summary, "/pushes");
  result.staleness_mean = NumberAt(summary, "/staleness/mean");
  result.staleness_p50 = NumberAt(summary, "/staleness/p50");
  result.staleness_p99 = NumberAt(summary, "/staleness/p99");
  result.staleness_max = NumberAt(summary, "/staleness/max");
  result.weights_sha256 = TextAt(summary, "/weights_sha256");
  result.staleness = CountsAt(summary, "/staleness/histogram");
  const RunSpec& spec = result.cell->settings;
  result.beyond_bound = ShareBeyond(result.staleness, 2 * EffectiveN(spec), result.staleness_max);
  result.diverged_in_epoch = NumberAt(summary, "/divergence/epoch");
  if (!result.diverged_in_epoch) return;
  result.error = ErrorOfGuess(spec);
}

}  // namespace

double EffectiveN(const RunSpec& spec) {
  const absl::StatusOr<RunPlan> plan = PlanRun(spec);
  return plan.ok() ? plan->effective_n : 1;
}

CellResult ReadResult(const LabDirectory& directory, const Cell& cell, GridEngine engine) {
  CellResult result;
  result.cell = &cell;
  result.state = directory.StateOf(cell.id);
  if (result.state != CellState::kDone && result.state != CellState::kRunning) return result;
  const bool is_done = result.state == CellState::kDone;
  if (is_done) result.build = *directory.BuildOf(cell.id);
  const RunDirectory run =
      RunDirectory::Of(is_done ? directory.ResultPath(cell.id) : directory.UnfinishedPath(cell.id));
  const absl::StatusOr<std::string> summary = ReadText(run.SummaryPath());
  if (is_done && summary.ok()) TakeSummary(ParseObject(*summary), engine, result);
  if (const absl::StatusOr<std::string> metrics = ReadMetrics(run.path()); metrics.ok()) {
    absl::StatusOr<RunCurves> curves = ParseCurves(*metrics, run.MetricsPath());
    if (curves.ok()) result.curves = *std::move(curves);
  }
  if (is_done) result.cost = directory.CostOf(cell.id);
  return result;
}

std::string OutcomeText(const CellResult& result) {
  if (result.state != CellState::kDone) {
    const Curve& curve = result.curves.accuracy_by_epoch;
    if (curve.empty()) return "";
    return fmt::format("error {:.2f}% in epoch {}", 100 * (1 - curve.back().y), curve.back().x);
  }
  const std::string error = result.error ? fmt::format("error {:.2f}%", 100 * *result.error) : "";
  if (result.diverged_in_epoch) {
    return fmt::format("diverged in epoch {}{}", *result.diverged_in_epoch,
                       error.empty() ? "" : " (" + error + ")");
  }
  if (!error.empty()) return error;
  return result.test_loss ? fmt::format("test loss {:.4f}", *result.test_loss) : "not measured";
}

std::string_view StatusName(const CellResult& result) {
  switch (result.state) {
    case CellState::kPending:
      return "pending";
    case CellState::kRunning:
      return "running";
    case CellState::kFailed:
      return "failed";
    case CellState::kDone:
      break;
  }
  return result.diverged_in_epoch ? "diverged" : "done";
}

std::optional<MeanInterval> PointResult::Mean(Figure figure) const {
  std::vector<double> values;
  for (const CellResult* result : results) {
    if (const std::optional<double>& value = result->*figure) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return MeanOf(values);
}

std::vector<uint64_t> PointResult::Staleness() const {
  std::vector<uint64_t> counts;
  for (const CellResult* result : results) {
    counts.resize(std::max(counts.size(), result->staleness.size()));
    for (size_t i = 0; i < result->staleness.size(); ++i) counts[i] += result->staleness[i];
  }
  return counts;
}

size_t PointResult::done() const {
  return static_cast<size_t>(std::ranges::count(results, CellState::kDone,
                                                [](const auto* result) { return result->state; }));
}

size_t PointResult::diverged() const {
  return static_cast<size_t>(std::ranges::count_if(
      results, [](const auto* result) { return result->diverged_in_epoch.has_value(); }));
}

std::vector<PointResult> PointsOf(const std::vector<CellResult>& results) {
  std::vector<PointResult> points;
  for (const CellResult& result : results) {
    if (points.empty() || points.back().cell->point != result.cell->point) {
      points.push_back({.cell = result.cell, .results = {}});
    }
    points.back().results.push_back(&result);
  }
  return points;
}

}  // namespace slipstream
