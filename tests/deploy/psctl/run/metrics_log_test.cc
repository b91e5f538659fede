#include "deploy/psctl/run/metrics_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Json> ReadRows(const std::string& path) {
  std::ifstream file(path);
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

TEST(MetricsLogTest, AddsALineOnlyWhereSomethingChanged) {
  const std::string path = testing::TempDir() + "/metrics-changed.jsonl";
  MetricsLog log(path);
  v1::RunStatus status = ExampleStatus();

  ASSERT_TRUE(log.Add(absl::Milliseconds(200), status).ok());
  ASSERT_TRUE(log.Add(absl::Milliseconds(400), status).ok());
  status.set_pushes(101);
  ASSERT_TRUE(log.Add(absl::Milliseconds(600), status).ok());

  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(
      rows[0].dump(),
      R"({"t":0.2,"phase":"TRAINING","policy":"softsync","stage":0,"learning_rate":0.0,"epoch":2,"batches_done":100,"updates":100,)"
      R"("pushes":100,"examples":3200,"examples_per_second":1234.4,"train_loss":0.5,)"
      R"("train_accuracy":0.875,"staleness":{"mean":1.25,"window":1.5},)"
      R"("versions":[100,99]})");
  EXPECT_EQ(rows[1]["t"], 0.6);
  EXPECT_EQ(rows[1]["pushes"], 101);
}

TEST(MetricsLogTest, HasNoLossBeforeTheFirstReport) {
  v1::RunStatus status = ExampleStatus();
  status.clear_workers();

  const Json row = MetricsJson(status, 0);

  EXPECT_TRUE(row["train_loss"].is_null());
  EXPECT_TRUE(row["train_accuracy"].is_null());
}

TEST(MetricsLogTest, TellsEveryEvaluationOnce) {
  const std::string path = testing::TempDir() + "/metrics-evaluations.jsonl";
  MetricsLog log(path);
  v1::RunStatus status = ExampleStatus();

  *status.add_evaluations() = ExampleEvaluation(1, 0.5, false);
  ASSERT_TRUE(log.Add(absl::Seconds(1), status).ok());
  ASSERT_TRUE(log.Add(absl::Seconds(2), status).ok());
  *status.add_evaluations() = ExampleEvaluation(2, 0.6, true);
  ASSERT_TRUE(log.Add(absl::Seconds(3), status).ok());

  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["evaluations"][0]["test_accuracy"], 0.5);
  EXPECT_EQ(rows[0]["evaluations"][0]["versions"].dump(), "[1406,1406]");
  ASSERT_EQ(rows[1]["evaluations"].size(), 1u);
  EXPECT_EQ(rows[1]["evaluations"][0]["epoch"], 2);
}

TEST(MetricsLogTest, TellsNewEvaluationsWhereTheServerKeepsOnlyTheLast) {
  const std::string path = testing::TempDir() + "/metrics-trimmed.jsonl";
  MetricsLog log(path);
  v1::RunStatus status = ExampleStatus();
  for (uint32_t epoch = 1; epoch <= 4; ++epoch) {
    *status.add_evaluations() = ExampleEvaluation(epoch, 0.5, false);
    if (epoch > 2) status.mutable_evaluations()->DeleteSubrange(0, 1);
    ASSERT_TRUE(log.Add(absl::Seconds(epoch), status).ok());
  }

  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 4u);
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i]["evaluations"].size(), 1u);
    EXPECT_EQ(rows[i]["evaluations"][0]["epoch"], i + 1);
  }
}

TEST(MetricsLogTest, TellsEveryEventInTheLineInWhichItAppears) {
  const std::string path = testing::TempDir() + "/metrics-events.jsonl";
  MetricsLog log(path);
  v1::RunStatus status = ExampleStatus();
  *status.add_events() = ExampleEvent(4, "worker", "worker died worker=1");
  status.mutable_events(0)->set_is_warning(true);
  status.mutable_events(0)->set_worker(1);
  ASSERT_TRUE(log.Add(absl::Seconds(1), status).ok());
  ASSERT_TRUE(log.Add(absl::Seconds(2), status).ok());
  *status.add_events() = ExampleEvent(6, "server", "server replaced shard=0");
  status.mutable_events(1)->set_shard(0);
  ASSERT_TRUE(log.Add(absl::Seconds(3), status).ok());

  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["events"].dump(),
            R"([{"number":4,"time":1700000000.25,"kind":"worker","is_warning":true,)"
            R"("text":"worker died worker=1","worker":1}])");
  EXPECT_EQ(rows[1]["events"].dump(),
            R"([{"number":6,"time":1700000000.25,"kind":"server","is_warning":false,)"
            R"("text":"server replaced shard=0","shard":0}])");
}

/// Limits the size of this process's files while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(MetricsLogTest, GoesOnWithWholeLinesOnceThereIsRoomAgain) {
  const std::string path = testing::TempDir() + "/metrics-full.jsonl";
  MetricsLog log(path);
  v1::RunStatus status = ExampleStatus();
  ASSERT_TRUE(log.Add(absl::Seconds(1), status).ok());
  const uintmax_t size = std::filesystem::file_size(path);
  *status.add_evaluations() = ExampleEvaluation(1, 0.5, false);
  absl::Status failed;
  {
    const FileSizeLimit limit(size + 20);
    failed = log.Add(absl::Seconds(2), status);
  }

  EXPECT_EQ(std::string(failed.message()), "cannot write " + path + ": File too large");
  EXPECT_EQ(std::filesystem::file_size(path), size) << "no beginning of a line";
  ASSERT_TRUE(log.Add(absl::Seconds(3), status).ok());
  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["t"], 3.0);
  EXPECT_EQ(rows[1]["evaluations"].size(), 1u);
}

void AddStep(v1::WorkerStatus& worker, uint64_t number) {
  v1::StepTimes& step = *worker.add_recent_steps();
  step.set_step(number);
  step.set_batch(number + 10);
  step.set_forward_begin(1.5);
  step.set_backward_begin(2.5);
  step.set_backward_end(4.5);
  step.set_waited_seconds(0.25);
  for (const double shift : {0.0, 0.5}) {
    v1::LaneTimes& lane = *step.add_lanes();
    lane.set_push_begin(3.0 + shift);
    lane.set_push_end(5.0 + shift);
    lane.set_pull_begin(6.0 + shift);
    lane.set_pull_end(7.0 + shift);
  }
}

TEST(MetricsLogTest, TellsTheLanesOfEveryStepOnce) {
  const std::string path = testing::TempDir() + "/metrics-lanes.jsonl";
  MetricsLog log(path);
  v1::RunStatus status = ExampleStatus();
  v1::WorkerStatus& worker = *status.mutable_workers(1);
  AddStep(worker, 4);
  AddStep(worker, 5);

  ASSERT_TRUE(log.Add(absl::Seconds(1), status).ok());
  ASSERT_TRUE(log.Add(absl::Seconds(2), status).ok());
  AddStep(worker, 6);
  ASSERT_TRUE(log.Add(absl::Seconds(3), status).ok());
  worker.set_incarnation(2);
  ASSERT_TRUE(log.Add(absl::Seconds(4), status).ok());

  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(rows[0]["lanes"].size(), 2u);
  EXPECT_EQ(rows[0]["lanes"][0].dump(),
            R"({"worker":1,"step":4,"batch":14,"forward":[1.5,2.5],"waited":0.25,)"
            R"("backward":[2.5,4.5],"push":[[3.0,5.0],[3.5,5.5]],"pull":[[6.0,7.0],[6.5,7.5]]})");
  ASSERT_EQ(rows[1]["lanes"].size(), 1u);
  EXPECT_EQ(rows[1]["lanes"][0]["step"], 6);
  EXPECT_EQ(rows[2]["lanes"].size(), 3u) << "of the worker's next incarnation";
}

TEST(MetricsLogTest, TellsTimesToTheMicrosecond) {
  v1::WorkerStatus worker;
  v1::StepTimes& step = *worker.add_recent_steps();
  step.set_step(1);
  step.set_forward_begin(1763928000.1234567);

  EXPECT_EQ(LanesJson(worker, 0)[0]["forward"][0], 1763928000.123457);
}

TEST(MetricsLogTest, KeepsLanesWithinTheirAllowanceAndEveryRow) {
  constexpr int kRows = 2000;
  constexpr int kWorkers = 16;
  const std::string path = testing::TempDir() + "/metrics-long.jsonl";
  MetricsLog log(path);
  v1::RunStatus status = ExampleStatus();
  status.clear_workers();
  for (uint32_t id = 0; id < kWorkers; ++id) status.add_workers()->set_worker(id);
  for (int i = 0; i < kRows; ++i) {
    status.set_pushes(static_cast<uint64_t>(i));
    for (v1::WorkerStatus& worker : *status.mutable_workers()) {
      worker.clear_recent_steps();
      for (int step = 1; step <= 4; ++step) AddStep(worker, static_cast<uint64_t>(4 * i + step));
    }
    ASSERT_TRUE(log.Add(absl::Seconds(i), status).ok());
  }

  double lane_bytes = 0;
  double largest = 0;
  int last = 0;
  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), size_t{kRows});
  for (int i = 0; i < kRows; ++i) {
    const Json& row = rows[static_cast<size_t>(i)];
    ASSERT_EQ(row["pushes"], i);
    if (!row.contains("lanes")) continue;
    EXPECT_EQ(row["lanes"].size(), 4u * kWorkers) << "all workers side by side";
    const auto bytes = static_cast<double>(row["lanes"].dump().size());
    lane_bytes += bytes;
    largest = std::max(largest, bytes);
    last = i;
  }
  EXPECT_LE(lane_bytes, MetricsLog::kLanesAtOnce + MetricsLog::kLanesPerSecond * kRows + largest);
  EXPECT_GT(last, kRows / 2) << "there are some of a long run, too";
}

}  // namespace
}  // namespace slipstream
