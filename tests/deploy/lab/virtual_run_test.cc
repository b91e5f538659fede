// Runs in virtual time, and their replay: what they have to be equal to.

#include "deploy/lab/virtual_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/config/run_config.h"
#include "common/log/logging.h"
#include "common/model_file/weights_digest.h"
#include "deploy/lab/push_lines.h"
#include "deploy/lab/replay.h"
#include "worker/data/load_data.h"

namespace slipstream {
namespace {

RunSpec RunOf(const std::vector<std::string>& set) {
  const std::string text = R"(
version: 1
name: tiny
seed: 3
model:
  input: [1, 16, 16]
  layers:
    - flatten
    - dense: {units: 16}
    - relu
    - dense: {units: 10}
data: {format: synthetic, train_examples: 480, test_examples: 100}
training: {batch_size: 8, epochs: 2}
cluster: {servers: ["localhost:1"], workers: 5}
)";
  absl::StatusOr<RunSpec> run = ToStatusOr(ParseRunConfig(text, "run.yaml", {.set = set}));
  EXPECT_TRUE(run.ok()) << run.status();
  return *run;
}

v1::RunStatus Train(const RunSpec& run, const WorldSpec& world = {}, uint32_t threads = 1) {
  const absl::StatusOr<DataSplits> data = LoadData(run.data, run.model, run.seed);
  EXPECT_TRUE(data.ok()) << data.status();
  auto made = VirtualRun::Make({.run = run, .world = world, .threads = threads}, *data);
  EXPECT_TRUE(made.ok()) << made.status();
  const absl::Status ran = (*made)->Run([] { return true; });
  EXPECT_TRUE(ran.ok()) << ran;
  return (*made)->Status();
}

int SilentLogs() {
  StartLogging({.role = "lab"}, LogSpec::Level::kError, LogSpec::Format::kText);
  return 0;
}
const int kSilentLogs = SilentLogs();

TEST(VirtualRun, TrainsUnderEveryPolicyWhateverTheThreads) {
  for (const char* policy : {"hardsync", "softsync", "async", "ssp", "backup"}) {
    for (const char* servers :
         {"cluster.servers=localhost:1", "cluster.servers=localhost:1,localhost:2"}) {
      SCOPED_TRACE(fmt::format("{} {}", policy, servers));
      const RunSpec run = RunOf({fmt::format("consistency.policy={}", policy), servers});
      const v1::RunStatus one = Train(run);
      EXPECT_EQ(one.phase(), v1::FINISHED) << one.failure();
      EXPECT_EQ(one.epochs(), 2);
      EXPECT_EQ(one.examples(), 960);
      EXPECT_EQ(Train(run, {}, 2).weights_sha256(), one.weights_sha256());
    }
  }
}

TEST(VirtualRun, GivesHardsyncTheSameWeightsInEveryWorld) {
  const RunSpec run = RunOf({"consistency.policy=hardsync"});
  const v1::RunStatus ideal = Train(run);
  WorldSpec slow;
  slow.compute.spread = ComputeTimeSpec::Spread::kPareto;
  slow.network = {.latency = absl::Milliseconds(3), .worker_gbits = 0.01, .server_gbits = 0.01};
  slow.update = absl::Milliseconds(2);
  const v1::RunStatus uneven = Train(run, slow);
  EXPECT_EQ(uneven.weights_sha256(), ideal.weights_sha256());
  EXPECT_GT(uneven.seconds(), ideal.seconds());
}

TEST(VirtualRun, TakesTheTimeOfItsTransfers) {
  // All values each way, at 80 ns a byte.
  WorldSpec world;
  world.compute.spread = ComputeTimeSpec::Spread::kNone;
  world.network = {.worker_gbits = 0.1, .server_gbits = 0.1};
  const RunSpec run = RunOf({"consistency.policy=async", "cluster.workers=1"});
  const v1::RunStatus status = Train(run, world);
  const double bytes = 4.0 * static_cast<double>(status.parameters());
  EXPECT_NEAR(status.seconds(), 120 * (8e-3 + 2 * 80e-9 * bytes),
              0.1);  // Up to a control interval more.
  EXPECT_EQ(status.shards(0).pushed_bytes(), 120 * 4 * status.parameters());
}

TEST(VirtualRun, HasTheStalenessThatTheConservationLawSays) {
  // With one gradient in flight for each worker, the mean is (workers − 1) / gradients per update.
  const v1::RunStatus async = Train(RunOf({"consistency.policy=async", "training.epochs=8"}));
  EXPECT_NEAR(async.staleness().mean(), 4, 0.1);
}

TEST(VirtualRun, TakesLocalSteps) {
  for (const char* algorithm : {"local_sgd", "downpour", "easgd", "diloco"}) {
    SCOPED_TRACE(algorithm);
    const RunSpec run =
        RunOf({"consistency.policy=async", fmt::format("worker.algorithm={}", algorithm)});
    const v1::RunStatus status = Train(run);
    EXPECT_EQ(status.phase(), v1::FINISHED) << status.failure();
    EXPECT_EQ(status.examples(), 960);
    EXPECT_EQ(Train(run, {}, 2).weights_sha256(), status.weights_sha256());
  }
}

TEST(VirtualRun, FollowsTheNewestWeightsInFreeLanes) {
  WorldSpec world;
  world.network = {.latency = absl::Milliseconds(1), .worker_gbits = 0.1, .server_gbits = 1};
  const RunSpec in_step = RunOf({"consistency.policy=async", "training.epochs=6"});
  const RunSpec free = RunOf({"consistency.policy=async", "training.epochs=6",
                              "training.pipeline_depth=2", "worker.lanes=free"});
  const v1::RunStatus waits = Train(in_step, world);
  const v1::RunStatus follows = Train(free, world);
  EXPECT_EQ(follows.phase(), v1::FINISHED) << follows.failure();
  EXPECT_EQ(Train(free, world, 2).weights_sha256(), follows.weights_sha256());
  EXPECT_LT(follows.seconds(), waits.seconds());  // Computing waits for no transfer.
}

TEST(VirtualRun, TrainsThroughTheAggregatorsOfATree) {
  WorldSpec world;
  world.network = {.latency = absl::Milliseconds(1), .server_gbits = 0.05, .group_gbits = 0.05};
  // Worker 1 is lost, and its group goes on without it.
  world.workers = {{.worker = WorkerId{1}, .leaves = absl::Milliseconds(200)}};
  for (const char* policy : {"hardsync", "softsync", "async"}) {
    for (const char* servers :
         {"cluster.servers=localhost:1", "cluster.servers=localhost:1,localhost:2"}) {
      SCOPED_TRACE(fmt::format("{} {}", policy, servers));
      const RunSpec run = RunOf({fmt::format("consistency.policy={}", policy), servers,
                                 "cluster.tree.fanout=3", "cluster.lease=500ms"});
      const v1::RunStatus one = Train(run, world);
      EXPECT_EQ(one.phase(), v1::FINISHED) << one.failure();
      EXPECT_EQ(one.epochs(), 2);
      EXPECT_GT(one.shards(0).composites(), 0);
      EXPECT_GT(one.shards(0).composite_parts(), one.shards(0).composites());
      EXPECT_EQ(Train(run, world, 2).weights_sha256(), one.weights_sha256());
    }
  }
}

TEST(VirtualRun, ATreeHidesMoreOfItsTransfersAndFreeLanesHideNearlyAll) {
  // The link of the server carries a model in 4 ms, and a mini-batch takes 16.
  WorldSpec world;
  world.compute.per_example = absl::Milliseconds(2);
  const double bytes = 4.0 * 4282;
  world.network.server_gbits = world.network.group_gbits = bytes * 8 / 4e-3 * 1e-9;
  const auto overlap = [&world](std::vector<std::string> set) {
    for (const char* each : {"consistency.policy=softsync", "consistency.n=1", "cluster.workers=12",
                             "training.epochs=10"}) {
      set.emplace_back(each);
    }
    const v1::RunStatus status = Train(RunOf(set), world);
    EXPECT_EQ(status.phase(), v1::FINISHED) << status.failure();
    EXPECT_EQ(status.parameters(), 4282);
    double sum = 0;
    for (const v1::WorkerStatus& worker : status.workers()) sum += worker.steady_overlap();
    return sum / status.workers_size();
  };

  const double base = overlap({});
  const double tree = overlap({"cluster.tree.fanout=4"});
  const double free =
      overlap({"cluster.tree.fanout=4", "worker.lanes=free", "training.pipeline_depth=2"});

  EXPECT_LT(base, 0.45);  // 12 workers need 48 ms of the link, each way.
  EXPECT_GT(tree, base + 0.1);
  EXPECT_GT(free, 0.9);  // Three groups need 12 of 16 ms.
}

TEST(VirtualRun, GoesOnWithoutALostWorkerAndWithOneThatReturns) {
  WorldSpec world;
  world.workers = {{.worker = WorkerId{1}, .leaves = absl::Milliseconds(300)},
                   {.worker = WorkerId{2},
                    .leaves = absl::Milliseconds(200),
                    .returns = absl::Milliseconds(250)}};
  for (const char* policy : {"hardsync", "softsync", "async"}) {
    SCOPED_TRACE(policy);
    const RunSpec run = RunOf({fmt::format("consistency.policy={}", policy), "cluster.lease=500ms",
                               "training.epochs=10"});
    const v1::RunStatus status = Train(run, world);
    EXPECT_EQ(status.phase(), v1::FINISHED) << status.failure();
    EXPECT_EQ(status.epochs(), 10);
  }
}

TEST(VirtualRun, SaysWhatVirtualTimeDoesNotKnow) {
  const absl::StatusOr<DataSplits> data = LoadData(RunOf({}).data, RunOf({}).model, RunOf({}).seed);
  const auto made = VirtualRun::Make({.run = RunOf({"consistency.policy=allreduce"})}, *data);
  EXPECT_TRUE(absl::IsInvalidArgument(made.status()));
  EXPECT_NE(made.status().message().find("allreduce"), std::string::npos) << made.status();
}

TEST(Replay, GivesTheWeightsOfTheRunAgain) {
  for (const char* policy : {"async", "softsync", "ssp"}) {
    for (const char* optimizer : {"sgd", "momentum", "adam"}) {
      for (const char* servers :
           {"cluster.servers=localhost:1", "cluster.servers=localhost:1,localhost:2"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", policy, optimizer, servers));
        RunSpec run = RunOf({fmt::format("consistency.policy={}", policy), servers,
                             fmt::format("optimizer.kind={}", optimizer),
                             "optimizer.staleness_scaling=per_gradient"});
        run.log.push_log = testing::TempDir();
        const v1::RunStatus status = Train(run);
        Replay::Options options = {.run = run, .threads = 2};
        for (size_t i = 0; i < run.cluster.servers.size(); ++i) {
          const auto log = ReadPushLog(fmt::format("{}/push-log-{}.csv", testing::TempDir(), i));
          ASSERT_TRUE(log.ok()) << log.status();
          options.logs.push_back(*log);
        }
        const absl::Status can = Replay::Check(options);
        ASSERT_TRUE(can.ok()) << can;
        const auto data = LoadData(run.data, run.model, run.seed);
        const auto replay = Replay::Make(options, *data);
        ASSERT_TRUE(replay.ok()) << replay.status();
        const auto result = (*replay)->Run([](uint64_t, uint64_t) { return true; });
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_EQ(WeightsSha256(result->weights), status.weights_sha256());
        EXPECT_DOUBLE_EQ(result->mean_staleness, status.staleness().mean());
      }
    }
  }
}

}  // namespace
}  // namespace slipstream
