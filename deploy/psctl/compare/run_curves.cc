#include "deploy/psctl/compare/run_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace slipstream {
namespace {

using Json = nlohmann::json;

// The training time is divided into at most kPartsMax parts of at least kPartSecondsMin seconds, or
// into one if it is shorter.
constexpr double kPartSecondsMin = 0.5;
constexpr double kPartsMax = 60;

std::optional<double> NumberAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

bool IsTraining(const Json& row) {
  const auto phase = row.find("phase");
  return phase != row.end() && (*phase == "TRAINING" || *phase == "DRAINING");
}

absl::StatusOr<std::vector<Json>> ParseRows(std::string_view metrics, const std::string& path) {
  std::vector<Json> rows;
  for (size_t number = 1; !metrics.empty(); ++number) {
    const size_t end = std::min(metrics.find('\n'), metrics.size());
    Json row = Json::parse(metrics.substr(0, end), nullptr, /*allow_exceptions=*/false);
    if (!row.is_object() || !NumberAt(row, "t")) {
      return absl::DataLossError(
          fmt::format("{}:{}: no JSON object with a time \"t\"", path, number));
    }
    rows.push_back(std::move(row));
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
  }
  return rows;
}

/// Returns the height of a curve at `x`, interpolated linearly between its points.
double HeightAt(const Curve& curve, double x) {
  const auto right = std::ranges::lower_bound(curve, x, {}, &CurvePoint::x);
  if (right == curve.begin()) return right->y;
  if (right == curve.end()) return curve.back().y;
  const CurvePoint& left = *(right - 1);
  return left.y + (right->y - left.y) * (x - left.x) / (right->x - left.x);
}

Curve Rates(const Curve& examples) {
  if (examples.empty() || examples.back().x <= examples.front().x) return {};
  const double begin = examples.front().x;
  const double length = examples.back().x - begin;
  const auto parts = static_cast<int>(std::clamp(length / kPartSecondsMin, 1.0, kPartsMax));
  Curve rates;
  for (int part = 0; part < parts; ++part) {
    const double from = begin + length * part / parts;
    const double to = begin + length * (part + 1) / parts;
    const double done = HeightAt(examples, to) - HeightAt(examples, from);
    rates.push_back({(from + to) / 2, done / (to - from)});
  }
  return rates;
}

void AddEvaluation(const Json& evaluation, double time, RunCurves& curves) {
  if (!evaluation.is_object()) return;
  const double begin = std::max(0.0, time - NumberAt(evaluation, "seconds").value_or(0));
  // The label counts epochs whose every mini-batch is done; what was measured has more in it.
  std::optional<double> epoch = NumberAt(evaluation, "epochs_measured");
  if (!epoch || *epoch == 0) epoch = NumberAt(evaluation, "epoch");
  if (const auto accuracy = NumberAt(evaluation, "test_accuracy")) {
    curves.accuracy_by_time.push_back({begin, *accuracy});
    if (epoch) {
      curves.accuracy_by_epoch.push_back({*epoch, *accuracy});
      const double label = NumberAt(evaluation, "epoch").value_or(*epoch);
      curves.measurements.push_back({label, *epoch, begin, *accuracy});
    }
  }
  if (const auto loss = NumberAt(evaluation, "test_loss")) {
    curves.loss_by_time.push_back({begin, *loss});
    if (epoch) curves.loss_by_epoch.push_back({*epoch, *loss});
  }
}

}  // namespace

absl::StatusOr<RunCurves> ParseCurves(std::string_view metrics, const std::string& path) {
  const absl::StatusOr<std::vector<Json>> rows = ParseRows(metrics, path);
  if (!rows.ok()) return rows.status();
  RunCurves curves;
  if (rows->empty()) return curves;
  const auto first = std::ranges::find_if(*rows, IsTraining);
  const double begin = *NumberAt(first == rows->end() ? rows->front() : *first, "t");
  Curve examples;
  for (const Json& row : *rows) {
    const double time = std::max(0.0, *NumberAt(row, "t") - begin);
    const std::optional<double> count = NumberAt(row, "examples");
    if (IsTraining(row) && count) examples.push_back({time, *count});
    const auto evaluations = row.find("evaluations");
    if (evaluations == row.end() || !evaluations->is_array()) continue;
    for (const Json& evaluation : *evaluations) AddEvaluation(evaluation, time, curves);
  }
  curves.rate_by_time = Rates(examples);
  for (Curve* curve : {&curves.accuracy_by_time, &curves.accuracy_by_epoch, &curves.loss_by_time,
                       &curves.loss_by_epoch}) {
    std::ranges::stable_sort(*curve, {}, &CurvePoint::x);
  }
  std::ranges::stable_sort(curves.measurements, {}, &Measurement::epoch);
  return curves;
}

}  // namespace slipstream
