#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/support/example_values.h"
#include "tests/worker/training/training_loop_fixture.h"
#include "worker/data/batch_order.h"

namespace slipstream {
namespace {

/// Tests of a worker that exchanges its model in two fragments, which are the two shards. The rule
/// of its steps is plain gradient descent.
class FragmentsTest : public TrainingLoopTest {
 protected:
  FragmentsTest() {
    run_.worker.algorithm = AlgorithmKind::kDiloco;
    run_.worker.parameters["fragments"] = 2;
    run_.worker.parameters["steps"] = 4;
    run_.training.batch_size = kBatchSize;
    run_.cluster.servers = {"a:1", "b:2"};
  }

  void DelayFragments() {
    run_.worker.parameters["fragment_delay"] = 1;
    run_.worker.parameters["mixing"] = 0.5;
  }

  /// Takes the worker's steps again, and compares the values of each part with what was pushed.
  void ExpectEveryPartIsThatOfItsSteps(uint64_t batches) {
    const std::vector<FakeShard::Push> pushes[2] = {shards_[0]->taken(), shards_[1]->taken()};
    const uint64_t quantum = run_.worker.quantum();
    const auto delay = static_cast<uint64_t>(run_.worker.parameters["fragment_delay"]);
    ASSERT_EQ(pushes[0].size(), (batches + quantum - 1) / quantum);
    ASSERT_EQ(pushes[1].size(), pushes[0].size());
    std::vector<float> x = WeightsAt(0, 0);
    std::vector<float> anchor = x;
    const auto land = [&](uint32_t shard, uint64_t push) {
      if (push + 1 >= pushes[shard].size()) return;
      const std::vector<float> landed =
          shards_[shard]->weights_of(pushes[shard][push + 1].header.base_version());
      const auto mixing = static_cast<float>(run_.worker.parameters["mixing"]);
      const size_t begin = map_.range(ShardId{shard}).begin;
      for (size_t i = 0; i < landed.size(); ++i) {
        x[begin + i] = mixing * x[begin + i] + (1 - mixing) * landed[i];
        anchor[begin + i] = landed[i];
      }
    };
    const auto expect_pushed = [&](uint32_t shard, uint64_t push) {
      const size_t begin = map_.range(ShardId{shard}).begin;
      const std::vector<float>& values = pushes[shard][push].values;
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], anchor[begin + i] - x[begin + i], 2e-6)
            << "push " << push << " to shard " << shard << ", value " << i;
      }
    };
    for (uint64_t push = 0; push < pushes[0].size(); ++push) {
      const uint64_t first = push * quantum;
      const uint64_t steps = std::min(quantum, batches - first);
      const uint64_t leaves = std::max<uint64_t>(1, steps / 2);
      for (uint64_t taken = 1; taken <= steps; ++taken) {
        const std::vector<float> gradient = GradientOf(x, first + taken - 1);
        const auto rate = static_cast<float>(run_.optimizer.learning_rate);
        for (size_t i = 0; i < x.size(); ++i) x[i] -= rate * gradient[i];
        if (taken == leaves) expect_pushed(1, push);
        if (taken == std::min(leaves + delay, steps)) land(1, push);
      }
      expect_pushed(0, push);
      land(0, push);
    }
  }
};

TEST_P(FragmentsTest, EachIsPushedAfterItsShareOfTheSteps) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryPartIsThatOfItsSteps(20);
  for (const FakeShard::Push& push : shards_[1]->taken()) {
    EXPECT_EQ(push.header.batches(0).count(), 4u);
    EXPECT_EQ(push.header.examples(), 4 * kBatchSize);
  }
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 20u);
}

TEST_P(FragmentsTest, ALastPushOfFewerStepsIsCutToo) {
  ASSERT_TRUE(Run(15).ok());

  ExpectEveryPartIsThatOfItsSteps(15);
}

TEST_P(FragmentsTest, StepsGoOnWhileOneIsOnTheWay) {
  DelayFragments();

  ASSERT_TRUE(Run(20).ok());

  ExpectEveryPartIsThatOfItsSteps(20);
}

TEST_P(FragmentsTest, EachIsPushedOnceWhateverBreaks) {
  DelayFragments();
  AddFaults(kPassingFaults, 8);

  ASSERT_TRUE(Run(40).ok());

  ExpectEveryPartIsThatOfItsSteps(40);
}

TEST_P(FragmentsTest, ARefusedOneDoesNotHoldBackTheOthers) {
  shards_[1]->RefuseNext(v1::TOO_STALE);

  ASSERT_TRUE(Run(12).ok());

  EXPECT_EQ(shards_[0]->taken().size(), 3u);
  EXPECT_EQ(shards_[1]->taken().size(), 2u);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 12u);
}

// The last of four steps leads further than the encoding reaches, when the second fragment's part
// has left.
TEST_P(FragmentsTest, APushThatCannotBeSentInFullEndsAndPartsThatHaveLeftCount) {
  run_.wire.push_codec = Encoding::kFp16;
  BatchOrder order(data_.count(), kBatchSize, kSeed);
  for (const uint32_t spoilt : order.Examples(3)) {
    SetValues(data_, spoilt * 8, 8, 1e8f);
  }

  ASSERT_TRUE(Run(4).ok());

  EXPECT_EQ(shards_[0]->taken().size(), 0u);
  EXPECT_EQ(shards_[1]->taken().size(), 1u);
  EXPECT_EQ(figures_.Read(absl::Now()).nonfinite.total, 1u);
  EXPECT_EQ(figures_.Read(absl::Now()).nonfinite.batch, 3u);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 4u);
}

// Nothing can leave after the two steps after which it should.
TEST_P(FragmentsTest, APartLeavesAfterTheFirstStepThatCounts) {
  BatchOrder order(data_.count(), kBatchSize, kSeed);
  for (const uint64_t batch : {0, 1}) {
    for (const uint32_t spoilt : order.Examples(batch)) {
      SetValues(data_, spoilt * 8, 1, std::numeric_limits<float>::infinity());
    }
  }

  ASSERT_TRUE(Run(4).ok());

  std::vector<float> x = WeightsAt(0, 0);
  const std::vector<float> gradient = GradientOf(x, 2);
  const std::vector<FakeShard::Push> second = shards_[1]->taken();
  ASSERT_EQ(second.size(), 1u);
  const size_t begin = map_.range(ShardId{1}).begin;
  for (size_t i = 0; i < second[0].values.size(); ++i) {
    ASSERT_NEAR(second[0].values[i],
                static_cast<float>(run_.optimizer.learning_rate) * gradient[begin + i], 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, FragmentsTest,
                         testing::Values(Case{"OfTheProcessor", 1, false},
                                         Case{"OfADeviceWithItsOwnMemory", 1, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
