#include "deploy/psctl/metrics_log.h"

#include <gtest/gtest.h>

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

  log.Add(absl::Milliseconds(200), status);
  log.Add(absl::Milliseconds(400), status);
  status.set_pushes(101);
  log.Add(absl::Milliseconds(600), status);

  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].dump(),
            R"({"t":0.2,"phase":"TRAINING","epoch":2,"batches_done":100,"updates":100,)"
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
  log.Add(absl::Seconds(1), status);
  log.Add(absl::Seconds(2), status);
  *status.add_evaluations() = ExampleEvaluation(2, 0.6, true);
  log.Add(absl::Seconds(3), status);

  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["evaluations"][0]["test_accuracy"], 0.5);
  EXPECT_EQ(rows[0]["evaluations"][0]["versions"].dump(), "[1406,1406]");
  ASSERT_EQ(rows[1]["evaluations"].size(), 1u);
  EXPECT_EQ(rows[1]["evaluations"][0]["epoch"], 2);
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

  log.Add(absl::Seconds(1), status);
  log.Add(absl::Seconds(2), status);
  AddStep(worker, 6);
  log.Add(absl::Seconds(3), status);
  worker.set_incarnation(2);
  log.Add(absl::Seconds(4), status);

  const std::vector<Json> rows = ReadRows(path);
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(rows[0]["lanes"].size(), 2u);
  EXPECT_EQ(rows[0]["lanes"][0].dump(),
            R"({"worker":1,"step":4,"batch":14,"forward":[1.5,2.5],"waited":0.25,)"
            R"("backward":[2.5,4.5],"push":[[3.0,5.0],[3.5,5.5]],"pull":[[6.0,7.0],[6.5,7.5]]})");
  ASSERT_EQ(rows[1]["lanes"].size(), 1u);
  EXPECT_EQ(rows[1]["lanes"][0]["step"], 6);
  EXPECT_EQ(rows[2]["lanes"].size(), 3u) << "of the worker's next life";
}

}  // namespace
}  // namespace slipstream
