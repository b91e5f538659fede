#include "deploy/psctl/status/divergence.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/printable.h"
#include "common/json/json_number.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the worker with the most mini-batches in a row that gave no finite numbers; null if none
/// has any.
const v1::WorkerStatus* WorstWorker(const v1::RunStatus& status) {
  const v1::WorkerStatus* worst = nullptr;
  for (const v1::WorkerStatus& worker : status.workers()) {
    const uint64_t in_a_row = worker.nonfinite().in_a_row();
    const uint64_t most = worst == nullptr ? 0 : worst->nonfinite().in_a_row();
    if (in_a_row > most) worst = &worker;
  }
  return worst;
}

/// Returns the epoch that the run was in, counted from 1.
uint32_t EpochOf(const v1::RunStatus& status) {
  const bool is_in_one = status.batches_done() < status.batches_total();
  return status.epochs() + (is_in_one ? 1 : 0);
}

const v1::EvaluationStatus* FinalOf(const v1::RunStatus& status) {
  for (const v1::EvaluationStatus& evaluation : status.evaluations()) {
    if (evaluation.final()) return &evaluation;
  }
  return nullptr;
}

}  // namespace

bool HasDiverged(const v1::RunStatus& status) { return status.ended_by() == "diverged"; }

bool IsFinite(const v1::EvaluationStatus& evaluation) {
  return std::isfinite(evaluation.test_loss()) && std::isfinite(evaluation.test_accuracy());
}

std::string AccuracyText(const v1::EvaluationStatus& evaluation) {
  return IsFinite(evaluation) ? fmt::format("{:.2f}%", 100 * evaluation.test_accuracy())
                              : kNotFinite;
}

Json DivergenceJson(const v1::RunStatus& status) {
  if (!HasDiverged(status)) return nullptr;
  const v1::WorkerStatus* worst = WorstWorker(status);
  Json versions = Json::array();
  for (const v1::ShardStatus& shard : status.shards()) versions.push_back(shard.version());
  const v1::EvaluationStatus* last = FinalOf(status);
  const bool has_accuracy = last != nullptr && last->has_test_accuracy() && IsFinite(*last);
  return {{"epoch", EpochOf(status)},
          {"updates", status.updates()},
          {"versions", std::move(versions)},
          {"worker", worst != nullptr ? Json(worst->worker()) : Json(nullptr)},
          {"mini_batch", worst != nullptr ? Json(worst->nonfinite().batch()) : Json(nullptr)},
          {"what", worst != nullptr ? Json(worst->nonfinite().what()) : Json(nullptr)},
          {"staleness_mean", NumberOrNull(status.staleness().mean())},
          {"staleness_window_mean", NumberOrNull(status.staleness().window_mean())},
          {"staleness_max", status.staleness().max()},
          {"test_accuracy", has_accuracy ? Json(last->test_accuracy()) : Json(kNotFinite)},
          {"reason", status.failure()}};
}

std::vector<std::pair<std::string, std::string>> DivergenceFacts(const v1::RunStatus& status) {
  if (!HasDiverged(status)) return {};
  std::string where =
      fmt::format("in epoch {}, after {} updates", EpochOf(status), status.updates());
  if (const v1::WorkerStatus* worst = WorstWorker(status)) {
    where += fmt::format("; mini-batch {} of worker {} gave {}", worst->nonfinite().batch(),
                         worst->worker(), Printable(worst->nonfinite().what()));
  } else {
    where += "; the final weights showed it";
  }
  return {
      {"diverged", std::move(where)},
      {"staleness then", fmt::format("mean {:.3f}, mean of the last 100 updates {:.3f}, max {}",
                                     status.staleness().mean(), status.staleness().window_mean(),
                                     status.staleness().max())}};
}

}  // namespace slipstream
