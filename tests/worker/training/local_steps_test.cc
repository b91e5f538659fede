#include "worker/training/local_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "tests/support/example_values.h"
#include "tests/worker/training/training_loop_fixture.h"

namespace slipstream {
namespace {

/// Tests of local steps, which use one slot.
class LocalStepsTest : public TrainingLoopTest {
 protected:
  LocalStepsTest() {
    run_.worker.algorithm = AlgorithmKind::kLocalSgd;
    run_.worker.parameters["steps"] = 3;
    run_.training.batch_size = kBatchSize;
  }
};

TEST_P(LocalStepsTest, EveryDeltaIsThatOfItsStepsFromTheVersionsItIsPushedAs) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryDeltaIsThatOfItsVersions(20);
  EXPECT_EQ(figures_.Read(absl::Now()).steps, 20u);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 20u);
}

TEST_P(LocalStepsTest, StepsFollowTheOptionsOfTensors) {
  run_.optimizer.per_tensor = {{.match = "*.bias", .learning_rate_factor = 0.25},
                               {.match = "2.*", .learning_rate_factor = 0}};

  ASSERT_TRUE(Run(20).ok());

  ExpectEveryDeltaIsThatOfItsVersions(20);
  const Tensor& frozen = *shapes_.layout.Find("2.weight");
  for (size_t push = 0; push < shards_[0]->taken().size(); ++push) {
    std::vector<float> delta = shards_[0]->taken()[push].values;
    const std::vector<float> rest = shards_[1]->taken()[push].values;
    delta.insert(delta.end(), rest.begin(), rest.end());
    const auto first = delta.begin() + static_cast<ptrdiff_t>(frozen.offset);
    EXPECT_EQ(std::count(first, first + static_cast<ptrdiff_t>(frozen.size()), 0.0f),
              static_cast<ptrdiff_t>(frozen.size()));
  }
}

TEST_P(LocalStepsTest, NoDeltaComesFromTwoVersionsOfAShardWhateverBreaks) {
  AddFaults(kPassingFaults, 8);

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryDeltaIsThatOfItsVersions(30);
}

TEST_P(LocalStepsTest, AStepThatIsNotFiniteIsLeftOutAndTheOthersCount) {
  SetValues(data_, 0, 1,
            std::numeric_limits<float>::infinity());  // Spoils one of four mini-batches.

  ASSERT_TRUE(Run(12).ok());

  ExpectEveryDeltaIsThatOfItsVersions(12);
  EXPECT_EQ(figures_.Read(absl::Now()).nonfinite.total, 3u);
  uint64_t examples = 0;
  for (const FakeShard::Push& push : shards_[0]->taken()) examples += push.header.examples();
  EXPECT_EQ(examples, 9 * kBatchSize);
}

TEST_P(LocalStepsTest, ASlowedWorkerIsSlowedAtEveryStep) {
  slowdown_.delay = absl::Milliseconds(5);
  const absl::Time begin = SteadyNow();

  ASSERT_TRUE(Run(8).ok());

  EXPECT_GE(SteadyNow() - begin, 8 * slowdown_.delay);
  ExpectEveryDeltaIsThatOfItsVersions(8);
}

TEST_P(LocalStepsTest, APushWithoutAnyFiniteStepIsLeftOut) {
  run_.worker.parameters["steps"] = 1;
  SetValues(data_, 0, 1, std::numeric_limits<float>::infinity());

  ASSERT_TRUE(Run(12).ok());

  for (const auto& shard : shards_) EXPECT_EQ(shard->taken().size(), 9u);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 12u);
}

INSTANTIATE_TEST_SUITE_P(Plans, LocalStepsTest,
                         testing::Values(Case{"OfTheProcessor", 1, false},
                                         Case{"OfADeviceWithItsOwnMemory", 1, true}),
                         [](const auto& tested) { return tested.param.name; });

/// Tests of a worker that keeps its weights.
class KeptWeightsTest : public TrainingLoopTest {
 protected:
  KeptWeightsTest() {
    run_.worker.algorithm = AlgorithmKind::kEasgd;
    run_.worker.parameters["push_every"] = 3;
    run_.cluster.workers = 4;
    run_.training.batch_size = kBatchSize;
  }

  /// Takes the worker's steps again, and compares the force of each with what was pushed.
  /// `is_first_refused`: the first shard has not taken the first push.
  void ExpectEveryPushIsTheForceOnKeptWeights(uint64_t batches, bool is_first_refused = false) {
    std::vector<FakeShard::Push> first = shards_[0]->taken();
    const std::vector<FakeShard::Push> second = shards_[1]->taken();
    if (is_first_refused) first.insert(first.begin(), FakeShard::Push{});
    const uint64_t quantum = run_.worker.quantum();
    ASSERT_EQ(second.size(), (batches + quantum - 1) / quantum);
    ASSERT_EQ(first.size(), second.size());
    std::vector<float> x = WeightsAt(0, 0);
    const auto rate = static_cast<float>(run_.optimizer.learning_rate);
    for (uint64_t push = 0; push < second.size(); ++push) {
      SCOPED_TRACE(testing::Message() << "push " << push);
      const uint64_t end = std::min(batches, (push + 1) * quantum);
      std::vector<float> force(x.size());
      for (uint64_t batch = push * quantum; batch < end; ++batch) {
        const std::vector<float> gradient = GradientOf(x, batch);
        if (batch + 1 == end) {
          const std::vector<float> center =
              WeightsAt(first[push].header.base_version(), second[push].header.base_version());
          for (size_t i = 0; i < x.size(); ++i) force[i] = 0.9f / 4 * (x[i] - center[i]);
        }
        for (size_t i = 0; i < x.size(); ++i) x[i] -= force[i] + rate * gradient[i];
      }
      std::vector<float> pushed = first[push].values;
      if (pushed.empty()) {
        pushed.resize(map_.range(ShardId{0}).size());
        for (size_t i = 0; i < pushed.size(); ++i) {
          x[i] += force[i];
          pushed[i] = -force[i];
        }
      }
      pushed.insert(pushed.end(), second[push].values.begin(), second[push].values.end());
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(pushed[i], -force[i], 1e-6) << i;
    }
  }
};

TEST_P(KeptWeightsTest, EveryPushIsTheForceOnTheWeightsOfAllEarlierSteps) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryPushIsTheForceOnKeptWeights(20);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 20u);
}

TEST_P(KeptWeightsTest, WhatBreaksOnTheWayChangesNoStep) {
  constexpr Fault kFaults[] = {Fault::kNone, Fault::kBreakBeforeTaking, Fault::kBreakAfterTaking,
                               Fault::kRetryLater};
  AddFaults(kFaults, 9);

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryPushIsTheForceOnKeptWeights(30);
}

// A step must not overwrite the gradient of the push before while that may have to be sent again.
TEST_P(KeptWeightsTest, InRoundsAnAnswerThatBreaksOffChangesNoStep) {
  run_.consistency.policy = PolicyKind::kHardsync;
  shards_[0]->NameWork([](uint64_t version) {
    v1::RoundWork work;
    work.set_kind(version < 10 ? v1::RoundWork::COMPUTE : v1::RoundWork::FINISHED);
    if (version >= 10) return work;
    work.mutable_batches()->set_first(3 * version);
    work.mutable_batches()->set_count(3);
    return work;
  });
  constexpr Fault kFaults[] = {Fault::kNone, Fault::kBreakWithinWeights, Fault::kBreakAfterTaking};
  AddFaults(kFaults, 10);

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryPushIsTheForceOnKeptWeights(30);
}

TEST_P(KeptWeightsTest, WhatAShardRefusesIsUndoneThereAlone) {
  shards_[0]->RefuseNext(v1::TOO_STALE);

  ASSERT_TRUE(Run(20).ok());

  ExpectEveryPushIsTheForceOnKeptWeights(20, true);
}

TEST_P(KeptWeightsTest, SavingTheStateChangesNoStep) {
  saves_state_ = true;
  run_.worker.save_state.directory = testing::TempDir() + "/SavingTheStateChangesNoStep";
  shards_[0]->RefuseNext(v1::TOO_STALE);

  ASSERT_TRUE(Run(20).ok());

  ExpectEveryPushIsTheForceOnKeptWeights(20, true);
}

TEST_P(KeptWeightsTest, WeightsThatAreNotFiniteAreReplacedByThoseOfTheServers) {
  run_.worker.parameters["push_every"] = 1;
  run_.optimizer.kind = RuleKind::kMomentum;
  run_.optimizer.learning_rate = 3e38;  // The first step leads out of all bounds.

  ASSERT_TRUE(Run(12).ok());

  EXPECT_GT(figures_.Read(absl::Now()).nonfinite.total, 0u);
  for (const auto& shard : shards_) {
    for (const float weight : shard->weights()) ASSERT_TRUE(std::isfinite(weight));
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, KeptWeightsTest,
                         testing::Values(Case{"OfTheProcessor", 1, false},
                                         Case{"OfADeviceWithItsOwnMemory", 1, true}),
                         [](const auto& tested) { return tested.param.name; });

/// Tests of a worker that fetches weights with every second push.
class SeldomFetchingTest : public TrainingLoopTest {
 protected:
  SeldomFetchingTest() {
    run_.worker.algorithm = AlgorithmKind::kDownpour;
    run_.worker.parameters["push_every"] = 3;
    run_.worker.parameters["fetch_every"] = 6;
    run_.training.batch_size = kBatchSize;
  }

  /// Takes the worker's steps again. `refused`: the push, if any, that the first shard has not
  /// taken, after which the worker has fetched that shard's weights.
  void ExpectEveryPushIsTheSumOfItsStepsGradients(uint64_t batches,
                                                  std::optional<size_t> refused = {}) {
    std::vector<FakeShard::Push> first = shards_[0]->taken();
    const std::vector<FakeShard::Push> second = shards_[1]->taken();
    if (refused) first.insert(first.begin() + static_cast<ptrdiff_t>(*refused), FakeShard::Push{});
    ASSERT_EQ(first.size(), batches / 3);
    ASSERT_EQ(second.size(), first.size());
    const size_t of_first = map_.range(ShardId{0}).size();
    const auto rate = static_cast<float>(run_.optimizer.learning_rate);
    std::vector<float> x;
    for (size_t push = 0; push < second.size(); ++push) {
      SCOPED_TRACE(testing::Message() << "push " << push);
      const uint64_t base = second[push].header.base_version();
      const std::vector<float> fetched = WeightsAt(first[push].header.base_version(), base);
      if (push % 2 == 0) {
        x = fetched;
      } else {
        EXPECT_EQ(base, second[push - 1].header.base_version());
      }
      if (push > 0 && refused == push - 1) {
        std::copy_n(fetched.begin(), of_first, x.begin());
      }
      std::vector<float> sum(x.size());
      for (uint64_t batch = 3 * push; batch < 3 * push + 3; ++batch) {
        const std::vector<float> gradient = GradientOf(x, batch);
        for (size_t i = 0; i < x.size(); ++i) {
          sum[i] += gradient[i];
          x[i] -= rate * gradient[i];
        }
      }
      for (size_t i = 0; i < first[push].values.size(); ++i) {
        ASSERT_NEAR(first[push].values[i], sum[i], 1e-5) << i;
      }
      for (size_t i = 0; i < second[push].values.size(); ++i) {
        ASSERT_NEAR(second[push].values[i], sum[of_first + i], 1e-5) << i;
      }
    }
  }
};

TEST_P(SeldomFetchingTest, BetweenFetchesTheStepsGoOn) {
  ASSERT_TRUE(Run(24).ok());

  ExpectEveryPushIsTheSumOfItsStepsGradients(24);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 24u);
}

TEST_P(SeldomFetchingTest, WhatBreaksOnTheWayChangesNoStep) {
  constexpr Fault kFaults[] = {Fault::kNone, Fault::kBreakBeforeTaking, Fault::kBreakAfterTaking,
                               Fault::kBreakWithinWeights, Fault::kRetryLater};
  AddFaults(kFaults, 11);

  ASSERT_TRUE(Run(30).ok());

  ExpectEveryPushIsTheSumOfItsStepsGradients(30);
}

TEST_P(SeldomFetchingTest, WhereAShardRefusesAPushTheWorkerTakesItsWeights) {
  shards_[0]->RefuseNext(v1::TOO_STALE);

  ASSERT_TRUE(Run(24).ok());

  ExpectEveryPushIsTheSumOfItsStepsGradients(24, 0);
}

TEST_P(SeldomFetchingTest, WeightsThatAreNotFiniteAreReplacedByThoseOfTheServers) {
  run_.worker.parameters["push_every"] = 1;
  run_.worker.parameters["fetch_every"] = 4;
  run_.optimizer.learning_rate = 3e38;  // The first step leads out of all bounds.

  ASSERT_TRUE(Run(12).ok());

  EXPECT_GT(figures_.Read(absl::Now()).nonfinite.total, 0u);
  for (const auto& shard : shards_) {
    EXPECT_GT(shard->taken().size(), 3u);
    for (const float weight : shard->weights()) ASSERT_TRUE(std::isfinite(weight));
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, SeldomFetchingTest,
                         testing::Values(Case{"OfTheProcessor", 1, false},
                                         Case{"OfADeviceWithItsOwnMemory", 1, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
