#include "deploy/psctl/metrics_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "deploy/psctl/json_number.h"
#include "deploy/psctl/progress_view.h"
#include "deploy/psctl/run_summary.h"

namespace slipstream {

nlohmann::ordered_json MetricsJson(const v1::RunStatus& status, int evaluations_told) {
  nlohmann::ordered_json versions = nlohmann::ordered_json::array();
  for (const v1::ShardStatus& shard : status.shards()) versions.push_back(shard.version());
  const bool has_reports = HasReports(status);
  const bool has_accuracy = has_reports && status.has_train_accuracy();
  nlohmann::ordered_json row = {
      {"phase", v1::Phase_Name(status.phase())},
      {"epoch", CurrentEpoch(status)},
      {"batches_done", status.batches_done()},
      {"updates", status.updates()},
      {"pushes", status.pushes()},
      {"examples", status.examples()},
      {"examples_per_second", NumberOrNull(status.examples_per_second())},
      {"train_loss", has_reports ? NumberOrNull(status.train_loss()) : nullptr},
      {"train_accuracy", has_accuracy ? NumberOrNull(status.train_accuracy()) : nullptr},
      {"staleness",
       {{"mean", NumberOrNull(status.staleness().mean())},
        {"window", NumberOrNull(status.staleness().window_mean())}}},
      {"versions", std::move(versions)},
  };
  for (int i = evaluations_told; i < status.evaluations_size(); ++i) {
    row["evaluations"].push_back(EvaluationJson(status.evaluations(i)));
  }
  return row;
}

nlohmann::ordered_json LanesJson(const v1::WorkerStatus& worker, uint64_t told) {
  using Json = nlohmann::ordered_json;
  Json steps = Json::array();
  for (const v1::StepTimes& step : worker.recent_steps()) {
    if (step.step() <= told) continue;
    Json push = Json::array();
    Json pull = Json::array();
    for (const v1::LaneTimes& lane : step.lanes()) {
      push.push_back(Json::array({lane.push_begin(), lane.push_end()}));
      pull.push_back(Json::array({lane.pull_begin(), lane.pull_end()}));
    }
    steps.push_back({{"worker", worker.worker()},
                     {"step", step.step()},
                     {"batch", step.batch()},
                     {"forward", Json::array({step.forward_begin(), step.backward_begin()})},
                     {"waited", step.waited_seconds()},
                     {"backward", Json::array({step.backward_begin(), step.backward_end()})},
                     {"push", std::move(push)},
                     {"pull", std::move(pull)}});
  }
  return steps;
}

nlohmann::ordered_json MetricsLog::TakeLanes(const v1::RunStatus& status) {
  nlohmann::ordered_json lanes = nlohmann::ordered_json::array();
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.recent_steps().empty()) continue;
    Told& told = steps_told_[worker.worker()];
    if (told.incarnation != worker.incarnation()) told = {worker.incarnation(), 0};
    for (auto& step : LanesJson(worker, told.step)) lanes.push_back(std::move(step));
    told.step = std::max(told.step, worker.recent_steps().rbegin()->step());
  }
  return lanes;
}

void MetricsLog::Add(absl::Duration since_start, const v1::RunStatus& status) {
  nlohmann::ordered_json row = MetricsJson(status, evaluations_told_);
  nlohmann::ordered_json lanes = TakeLanes(status);
  if (row == last_ && lanes.empty()) return;
  nlohmann::ordered_json line = {
      {"t", std::round(absl::ToDoubleSeconds(since_start) * 1000) / 1000}};
  line.update(row);
  if (!lanes.empty()) line["lanes"] = std::move(lanes);
  file_ << line.dump() << '\n' << std::flush;
  evaluations_told_ = std::max(evaluations_told_, status.evaluations_size());
  row.erase("evaluations");
  last_ = std::move(row);
}

}  // namespace slipstream
