// Tests of a run that starts from a checkpoint of another run.

#include "server/data_plane/run_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "server/storage/checkpoint_store.h"
#include "server/storage/posix_disk.h"
#include "tests/server/data_plane/shard_service_fixture.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

class RunStartTest : public ShardServiceTest {
 protected:
  RunStartTest() {
    std::filesystem::remove_all(directory_);
    optimizer_.kind = RuleKind::kMomentum;
    durability_ = {.level = DurabilitySpec::Level::kCheckpoint, .directory = directory_};
    open_store_ = [this](uint64_t run, bool /*has_begun*/) {
      return CheckpointStore::Open(disk_, directory_, run, ShardId{0});
    };
  }
  ~RunStartTest() override { std::filesystem::remove_all(directory_); }

  /// Runs a shard of which version 1 is saved and version 2 is not. Returns the weights of version
  /// 2.
  std::vector<float> TrainAndSave() {
    Start(kAsync, 1);
    EXPECT_EQ(PushOnes(1).outcome(), v1::APPLIED);
    ++orders_.number;
    orders_.save.number = 1;
    service_->OnOrders(orders_);
    AwaitReport([](const v1::ShardStatus& status) { return status.checkpoint().version() == 1; },
                "a checkpoint of version 1");
    EXPECT_EQ(PushOnes(2).outcome(), v1::APPLIED);
    std::vector<float> weights = Pull(2).values;
    EndProcess();
    return weights;
  }

  /// Begins a run that starts from the checkpoints of the one before, and saves nothing.
  void StartAgain(bool optimizer_state) {
    start_from_ = {.checkpoint = directory_, .optimizer_state = optimizer_state};
    read_start_ = ReaderOf(disk_, start_from_);
    durability_ = {};
    open_store_ = nullptr;
    orders_ = {};
    Serve(kAsync, 1);
    ASSERT_TRUE(SendInitialWeights(std::vector<float>(values_, 0.5f)).ok());
  }

  v1::PushReply PushOnes(uint64_t sequence) {
    return Push(Header(0, sequence, sequence - 1), std::vector<float>(kValues, 1.0f));
  }

  std::string AwaitFailure() {
    v1::SyncServerRequest report;
    AwaitReport(
        [&](const v1::ShardStatus&) {
          service_->Describe(report);
          return !report.failure().empty();
        },
        "a failure");
    return report.failure();
  }

  const std::string directory_ = testing::TempDir() + "/run_start_test";
  PosixDisk disk_;
};

TEST_F(RunStartTest, WithTheOptimizersStateItMakesTheVersionsOfTheRunThatWentOn) {
  const std::vector<float> went_on = TrainAndSave();
  ASSERT_LT(went_on.front(), -2.0f) << "momentum made no difference";

  StartAgain(/*optimizer_state=*/true);
  SetPhase(Phase::kTraining);

  const Pulled first = Pull();
  EXPECT_EQ(first.version, 0u);
  EXPECT_EQ(first.values, std::vector<float>(kValues, -1.0f));
  EXPECT_EQ(PushOnes(1).outcome(), v1::APPLIED);
  EXPECT_EQ(Pull(1).values, went_on);
  EXPECT_EQ(service_->ShardReport().started_from(), "run 000000000000004d, version 1");
}

TEST_F(RunStartTest, WithoutItTheOptimizerBeginsAnew) {
  TrainAndSave();

  StartAgain(/*optimizer_state=*/false);
  SetPhase(Phase::kTraining);

  EXPECT_EQ(Pull().values, std::vector<float>(kValues, -1.0f));
  EXPECT_EQ(PushOnes(1).outcome(), v1::APPLIED);
  EXPECT_EQ(Pull(1).values, std::vector<float>(kValues, -2.0f));
}

TEST_F(RunStartTest, AnotherOptimizerNeedsTheWeightsAlone) {
  TrainAndSave();
  optimizer_.kind = RuleKind::kAdam;

  StartAgain(/*optimizer_state=*/true);

  EXPECT_THAT(AwaitFailure(),
              testing::AllOf(HasSubstr("training.start_from: "), HasSubstr("has no array"),
                             HasSubstr("optimizer_state: false begins with the weights alone")));
}

TEST_F(RunStartTest, AnotherModelIsRefusedByName) {
  TrainAndSave();
  values_ = kValues + 1;

  StartAgain(/*optimizer_state=*/true);

  EXPECT_THAT(AwaitFailure(), HasSubstr("the checkpoint is of another model: "));
  EXPECT_FALSE(service_->Initialized());
}

TEST_F(RunStartTest, APartOfASetIsRefusedWhereOtherServersMayChooseAnotherVersion) {
  const std::vector<float> values(kValues);
  const CheckpointArray weights = {kWeightsArray, values};
  const auto layout = [](uint64_t count) {
    TensorLayout tensors;
    EXPECT_TRUE(tensors.Append("weight", {count}).ok());
    return tensors;
  };
  const TensorLayout model = layout(2 * kValues);
  const ParameterRange range = {.begin = 0, .end = kValues};
  auto store = CheckpointStore::Open(disk_, directory_, 1, ShardId{0}).value();
  const auto save = [&](uint64_t version) {
    return store->Save({.run = 1, .range = range, .saved = {.version = Version{version}}},
                       PartOf(model, range), "state", {&weights, 1});
  };
  const auto read = [&] {
    const ArrayBuffers arrays = {{kWeightsArray, FloatBuffer::TryMake(kValues)}};
    return ReaderOf(disk_, {.checkpoint = directory_, .optimizer_state = false})(model, range,
                                                                                 arrays)
        .status();
  };

  ASSERT_TRUE(save(7).ok());
  EXPECT_TRUE(read().ok()) << "a set that was cut for servers with a disk each";
  ASSERT_TRUE(save(8).ok());

  EXPECT_TRUE(absl::IsDataLoss(read()));
  EXPECT_THAT(std::string(read().message()), HasSubstr("each server might begin with another"));
}

TEST_F(RunStartTest, ADirectoryWithoutCheckpointsIsNamed) {
  StartAgain(/*optimizer_state=*/true);

  EXPECT_THAT(AwaitFailure(), HasSubstr("training.start_from: cannot list " + directory_));
}

}  // namespace
}  // namespace slipstream
