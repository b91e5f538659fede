#include "worker/training/training_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/example_values.h"
#include "tests/worker/training/training_loop_fixture.h"

namespace slipstream {
namespace {

TEST_P(TrainingLoopTest, ThePushOfAClippedGradientSaysByWhichFactor) {
  run_.optimizer.clip_norm = 0.01;

  ASSERT_TRUE(Run(8).ok());

  ExpectEveryGradientIsThatOfItsVersions(8);
  const std::vector<FakeShard::Push> first = shards_[0]->taken();
  const std::vector<FakeShard::Push> second = shards_[1]->taken();
  for (size_t i = 0; i < 8; ++i) {
    double squares = 0;
    for (const float g : first[i].values) squares += double{g} * g;
    for (const float g : second[i].values) squares += double{g} * g;
    EXPECT_NEAR(first[i].clip * std::sqrt(squares), 0.01, 1e-7) << "push " << i;
    EXPECT_EQ(second[i].clip, first[i].clip) << "push " << i;
  }
}

TEST_P(TrainingLoopTest, ValuesAreClippedBeforeTheyAreSent) {
  run_.optimizer.clip_value = 1e-4;

  ASSERT_TRUE(Run(8).ok());

  for (const auto& shard : shards_) {
    for (const FakeShard::Push& push : shard->taken()) {
      EXPECT_EQ(std::ranges::max(push.values), 1e-4f);
      EXPECT_EQ(std::ranges::min(push.values), -1e-4f);
    }
  }
}

TEST_P(TrainingLoopTest, EveryGradientIsThatOfTheVersionsItIsPushedAs) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryGradientIsThatOfItsVersions(20);
  EXPECT_EQ(figures_.Read(absl::Now()).steps, 20u);
  EXPECT_EQ(figures_.Read(absl::Now()).recent.back().step.number, 20u);
}

TEST_P(TrainingLoopTest, NoGradientComesFromTwoVersionsOfAShardWhateverBreaks) {
  constexpr Fault kFaults[] = {Fault::kNone,
                               Fault::kBreakBeforeTaking,
                               Fault::kBreakAfterTaking,
                               Fault::kBreakWithinWeights,
                               Fault::kMoveOnWithinWeights,
                               Fault::kMoveOnWithinWeights,
                               Fault::kRetryLater};
  RandomStream random(7, 0);
  for (const auto& shard : shards_) {
    for (int i = 0; i < 40; ++i) shard->AddFault(kFaults[random.Below(std::size(kFaults))]);
  }

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryGradientIsThatOfItsVersions(30);
}

TEST_P(TrainingLoopTest, GoesOnWhereAShardReturnsToAnOlderVersionWhileItsWeightsArrive) {
  for (int i = 0; i < 3; ++i) shards_[1]->AddFault(Fault::kNone);
  shards_[1]->AddFault(Fault::kReturnWithinWeights);

  ASSERT_TRUE(Run(12).ok());

  EXPECT_EQ(shards_[0]->taken().size(), 12u) << "a mini-batch was lost, or counted twice";
  EXPECT_LE(shards_[1]->taken().size(), 12u);
  EXPECT_EQ(shards_[1]->taken().back().header.generation(), 1u);
}

TEST_P(TrainingLoopTest, AStepThatIsNotFiniteHasNoEffectAlthoughItsPushHasBegun) {
  // One of the four mini-batches of each epoch has a gradient that is not finite.
  SetValues(data_, 0, 1, std::numeric_limits<float>::infinity());

  ASSERT_TRUE(Run(12).ok());

  for (const auto& shard : shards_) EXPECT_EQ(shard->taken().size(), 9u);
  EXPECT_EQ(figures_.Read(absl::Now()).nonfinite.total, 3u);
}

TEST_P(TrainingLoopTest, ASlowedWorkerPushesTheSameGradientsLater) {
  slowdown_.delay = absl::Milliseconds(5);
  const absl::Time begin = SteadyNow();

  ASSERT_TRUE(Run(8).ok());

  EXPECT_GE(SteadyNow() - begin, 8 * slowdown_.delay);
  ExpectEveryGradientIsThatOfItsVersions(8);
}

TEST_P(TrainingLoopTest, AStopEndsTheWaitOfASlowedWorker) {
  slowdown_.delay = absl::Hours(1);
  std::thread stopper([this] {
    while (shards_[1]->values_received() == 0) std::this_thread::yield();
    interruption_.Stop();
  });

  const absl::Status status = Run(8);
  stopper.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  for (const auto& shard : shards_) EXPECT_EQ(shard->taken().size(), 0u);
}

TEST_P(TrainingLoopTest, AStopEndsAStepThatWaitsForWeights) {
  shards_[1]->AddFault(Fault::kPauseWithinWeights);
  std::thread stopper([this] {
    while (shards_[1]->received() == 0) std::this_thread::yield();
    interruption_.Stop();
  });

  const absl::Status status = Run(20);
  stopper.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

TEST_P(TrainingLoopTest, ARefusalEndsTrainingByItsName) {
  shards_[0]->RefuseNext(v1::FENCED);

  const absl::Status status = Run(20);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

INSTANTIATE_TEST_SUITE_P(Plans, TrainingLoopTest,
                         testing::Values(Case{"OneOfTheProcessor", 1, false},
                                         Case{"OneWithMemoryOfItsOwn", 1, true},
                                         Case{"TwoOfTheProcessor", 2, false},
                                         Case{"TwoWithMemoryOfTheirOwn", 2, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
