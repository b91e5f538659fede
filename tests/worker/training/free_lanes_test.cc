#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "tests/support/example_values.h"
#include "tests/worker/training/training_loop_fixture.h"

namespace slipstream {
namespace {

/// Tests of the training loop where weights come beside the pushes.
class FreeLanesTest : public TrainingLoopTest {
 protected:
  FreeLanesTest() { run_.worker.lanes = WorkerSpec::Lanes::kFree; }
};

TEST_P(FreeLanesTest, EveryGradientIsThatOfTheVersionsItIsPushedAsAndNoPushBringsWeights) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryGradientIsThatOfItsVersions(20);
  EXPECT_EQ(figures_.Read(absl::Now()).steps, 20u);
  for (const auto& shard : shards_) {
    for (const FakeShard::Push& push : shard->taken()) EXPECT_FALSE(push.header.pull());
    const std::vector<v1::PullRequest> pulls = shard->pulls();
    EXPECT_TRUE(std::ranges::none_of(pulls, &v1::PullRequest::trains)) << "not even the first";
    const auto is_first = [](const v1::PullRequest& pull) { return pull.min_version() == 0; };
    EXPECT_EQ(std::ranges::count_if(pulls, is_first), 1) << "one for all slots";
  }
}

TEST_P(FreeLanesTest, SlowStepsBeginWithTheWeightsThatCameMeanwhile) {
  slowdown_.delay = absl::Milliseconds(10);

  ASSERT_TRUE(Run(20).ok());

  ExpectEveryGradientIsThatOfItsVersions(20);
  // Ten steps take a hundred times as long as a version needs to come.
  for (const auto& shard : shards_) {
    EXPECT_GE(shard->taken().back().header.base_version(), 10u);
  }
}

TEST_P(FreeLanesTest, NoGradientComesFromTwoVersionsOfAShardWhateverBreaks) {
  AddFaults(kPassingFaults, 8);

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryGradientIsThatOfItsVersions(30);
}

TEST_P(FreeLanesTest, AStepThatIsNotFiniteHasNoEffect) {
  // One of the four mini-batches of each epoch has a gradient that is not finite.
  SetValues(data_, 0, 1, std::numeric_limits<float>::infinity());

  ASSERT_TRUE(Run(12).ok());

  for (const auto& shard : shards_) EXPECT_EQ(shard->taken().size(), 9u);
}

TEST_P(FreeLanesTest, ARefusalAsTooStaleLeadsToAPullFromThatShardAndNoStop) {
  shards_[0]->RefuseNext(v1::TOO_STALE);

  ASSERT_TRUE(Run(20).ok());

  EXPECT_EQ(shards_[0]->taken().size(), 19u);
  EXPECT_EQ(shards_[1]->taken().size(), 20u);
  const std::vector<v1::PullRequest> pulls = shards_[0]->pulls();
  EXPECT_EQ(std::ranges::count_if(pulls, &v1::PullRequest::trains), 1);
}

TEST_P(FreeLanesTest, AStopEndsTrainingAndThePullsThatWait) {
  slowdown_.delay = absl::Milliseconds(1);
  std::thread stopper([this] {
    while (shards_[1]->received() < 5) std::this_thread::yield();
    interruption_.Stop();
  });

  const absl::Status status = Run(100'000);
  stopper.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

TEST_P(FreeLanesTest, ARefusalEndsTrainingByItsName) {
  shards_[0]->RefuseNext(v1::FENCED);

  const absl::Status status = Run(20);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

INSTANTIATE_TEST_SUITE_P(Plans, FreeLanesTest,
                         testing::Values(Case{"OfTheProcessor", 2, false},
                                         Case{"WithMemoryOfTheirOwn", 2, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
