#include "deploy/psctl/run/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/files/output_file.h"
#include "common/json/json_number.h"
#include "common/json/json_text.h"
#include "deploy/psctl/status/progress_view.h"
#include "deploy/psctl/status/run_summary.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

double ToMicroseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

Json Span(double begin, double end) {
  return Json::array({ToMicroseconds(begin), ToMicroseconds(end)});
}

Json EventJson(const v1::RunEvent& event) {
  Json json = {{"number", event.number()},
               {"time", static_cast<double>(event.time_ms()) / 1000},
               {"kind", event.kind()},
               {"is_warning", event.is_warning()},
               {"text", event.text()}};
  if (event.has_worker()) json["worker"] = event.worker();
  if (event.has_shard()) json["shard"] = event.shard();
  return json;
}

}  // namespace

Json MetricsJson(const v1::RunStatus& status, uint64_t evaluation_told, uint64_t event_told) {
  Json versions = Json::array();
  for (const v1::ShardStatus& shard : status.shards()) versions.push_back(shard.version());
  const bool has_reports = HasReports(status);
  const bool has_accuracy = has_reports && status.has_train_accuracy();
  Json row = {
      {"phase", v1::Phase_Name(status.phase())},
      {"policy", status.policy()},
      {"stage", status.stage()},
      {"learning_rate", NumberOrNull(status.learning_rate())},
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
  for (const v1::EvaluationStatus& evaluation : status.evaluations()) {
    if (evaluation.number() <= evaluation_told) continue;
    row["evaluations"].push_back(EvaluationJson(evaluation));
  }
  for (const v1::RunEvent& event : status.events()) {
    if (event.number() > event_told) row["events"].push_back(EventJson(event));
  }
  return row;
}

Json LanesJson(const v1::WorkerStatus& worker, uint64_t told) {
  Json steps = Json::array();
  for (const v1::StepTimes& step : worker.recent_steps()) {
    if (step.step() <= told) continue;
    Json push = Json::array();
    Json pull = Json::array();
    for (const v1::LaneTimes& lane : step.lanes()) {
      const bool is_used = lane.push_end() > 0;
      push.push_back(is_used ? Span(lane.push_begin(), lane.push_end()) : Json());
      pull.push_back(is_used ? Span(lane.pull_begin(), lane.pull_end()) : Json());
    }
    steps.push_back({{"worker", worker.worker()},
                     {"step", step.step()},
                     {"batch", step.batch()},
                     {"forward", Span(step.forward_begin(), step.backward_begin())},
                     {"waited", ToMicroseconds(step.waited_seconds())},
                     {"backward", Span(step.backward_begin(), step.backward_end())},
                     {"push", std::move(push)},
                     {"pull", std::move(pull)}});
  }
  return steps;
}

Json MetricsLog::NewLanes(const v1::RunStatus& status, StepsTold& steps_told) {
  Json lanes = Json::array();
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.recent_steps().empty()) continue;
    Told& told = steps_told[worker.worker()];
    if (told.incarnation != worker.incarnation()) told = {worker.incarnation(), 0};
    for (auto& step : LanesJson(worker, told.step)) lanes.push_back(std::move(step));
    told.step = std::max(told.step, worker.recent_steps().rbegin()->step());
  }
  return lanes;
}

MetricsLog::MetricsLog(const std::string& path)
    : path_(path),
      file_(OpenOutput(path, O_TRUNC, 0644)),
      open_error_(file_.is_open() ? 0 : errno) {}

absl::Status MetricsLog::Add(absl::Duration since_start, const v1::RunStatus& status) {
  Json row = MetricsJson(status, evaluation_told_, event_told_);
  const double seconds = absl::ToDoubleSeconds(since_start);
  Json lanes = Json::array();
  StepsTold steps_told = steps_told_;
  if (lane_bytes_ < kLanesAtOnce + kLanesPerSecond * seconds) lanes = NewLanes(status, steps_told);
  if (row == last_ && lanes.empty()) return absl::OkStatus();

  Json line = {{"t", std::round(seconds * 1000) / 1000}};
  line.update(row);
  std::string text = JsonLine(line);
  const size_t without_lanes = text.size();
  if (!lanes.empty()) {
    line["lanes"] = std::move(lanes);
    text = JsonLine(line);
  }
  const absl::Status added = Append(text);
  if (!added.ok()) return added;

  lane_bytes_ += static_cast<double>(text.size() - without_lanes);
  steps_told_ = std::move(steps_told);
  for (const v1::EvaluationStatus& evaluation : status.evaluations()) {
    evaluation_told_ = std::max(evaluation_told_, evaluation.number());
  }
  for (const v1::RunEvent& event : status.events()) {
    event_told_ = std::max(event_told_, event.number());
  }
  row.erase("evaluations");
  row.erase("events");
  last_ = std::move(row);
  return absl::OkStatus();
}

absl::Status MetricsLog::Append(const std::string& line) {
  int error = open_error_;
  size_t written = 0;
  while (error == 0 && written < line.size()) {
    const ssize_t bytes = pwrite(file_.get(), line.data() + written, line.size() - written,
                                 size_ + static_cast<off_t>(written));
    if (bytes >= 0) {
      written += static_cast<size_t>(bytes);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error != 0) {
    // A reader could not parse half a line, nor the next line behind it.
    [[maybe_unused]] const int cut = ftruncate(file_.get(), size_);
    return absl::DataLossError("cannot write " + path_ + ": " + WhyNoOutput(error));
  }
  size_ += static_cast<off_t>(line.size());
  return absl::OkStatus();
}

}  // namespace slipstream
