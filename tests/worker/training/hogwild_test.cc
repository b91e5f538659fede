#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "common/process/exit_code.h"
#include "tests/support/example_values.h"
#include "tests/worker/training/training_loop_fixture.h"

namespace slipstream {
namespace {

/// Tests of the training loop on four threads. Where a test has to know what the steps computed
/// from, they are so short that the weights stay what they were.
class HogwildTest : public TrainingLoopTest {
 protected:
  HogwildTest() {
    run_.worker.algorithm = AlgorithmKind::kDownpour;
    run_.worker.parameters["push_every"] = 6;
    run_.worker.threads = 4;
    run_.training.batch_size = kBatchSize;
    run_.optimizer.learning_rate = 1e-20;
  }

  /// Expects that every push is the sum of the gradients of its mini-batches, each once, from the
  /// weights of its versions.
  void ExpectEveryPushIsTheSumOfItsGradients(uint64_t batches) {
    const std::vector<FakeShard::Push> first = shards_[0]->taken();
    const std::vector<FakeShard::Push> second = shards_[1]->taken();
    const uint64_t quantum = run_.worker.quantum();
    ASSERT_EQ(first.size(), (batches + quantum - 1) / quantum);
    ASSERT_EQ(second.size(), first.size());
    for (uint64_t push = 0; push < first.size(); ++push) {
      SCOPED_TRACE(testing::Message() << "push " << push);
      const uint64_t end = std::min(batches, (push + 1) * quantum);
      ASSERT_EQ(first[push].header.batches(0).first(), push * quantum);
      ASSERT_EQ(first[push].header.batches(0).count(), end - push * quantum);
      ASSERT_EQ(first[push].header.examples(), (end - push * quantum) * kBatchSize);
      const std::vector<float> base =
          WeightsAt(first[push].header.base_version(), second[push].header.base_version());
      std::vector<double> sum(base.size());
      std::vector<double> magnitudes(base.size(), 1);  // For the tolerance of rounding.
      for (uint64_t batch = push * quantum; batch < end; ++batch) {
        const std::vector<float> gradient = GradientOf(base, batch);
        for (size_t i = 0; i < sum.size(); ++i) {
          sum[i] += gradient[i];
          magnitudes[i] += std::fabs(gradient[i]);
        }
      }
      std::vector<float> pushed = first[push].values;
      pushed.insert(pushed.end(), second[push].values.begin(), second[push].values.end());
      ASSERT_EQ(pushed.size(), sum.size());
      for (size_t i = 0; i < sum.size(); ++i) {
        ASSERT_NEAR(pushed[i], sum[i], 1e-6 * magnitudes[i]) << i;
      }
    }
  }
};

TEST_P(HogwildTest, EveryMiniBatchOfAPushIsComputedOnce) {
  ASSERT_TRUE(Run(20).ok());

  ExpectEveryPushIsTheSumOfItsGradients(20);
  EXPECT_EQ(figures_.Read(absl::Now()).steps, 20u);
  EXPECT_EQ(figures_.Read(absl::Now()).progress.back().batches_done, 20u);
}

TEST_P(HogwildTest, NoPushComesFromTwoVersionsOfAShardWhateverBreaks) {
  AddFaults(kPassingFaults, 12);

  ASSERT_TRUE(Run(60).ok());

  ExpectEveryPushIsTheSumOfItsGradients(60);
}

TEST_P(HogwildTest, AStepThatIsNotFiniteIsLeftOutAndTheOthersCount) {
  SetValues(data_, 0, 1,
            std::numeric_limits<float>::infinity());  // Spoils one of four mini-batches.

  ASSERT_TRUE(Run(12).ok());

  EXPECT_EQ(figures_.Read(absl::Now()).nonfinite.total, 3u);
  uint64_t examples = 0;
  for (const FakeShard::Push& push : shards_[0]->taken()) {
    examples += push.header.examples();
    for (const float value : push.values) ASSERT_TRUE(std::isfinite(value));
  }
  EXPECT_EQ(examples, 9 * kBatchSize);
}

TEST_P(HogwildTest, SeveralThatAreNotFiniteInARowEndTraining) {
  SetValues(data_, 0, data_.examples.size(), std::numeric_limits<float>::infinity());

  const absl::Status status = Run(24);

  EXPECT_EQ(ExitCodeFor(status), ExitCode::kDiverged) << status;
}

TEST_P(HogwildTest, AStopEndsTheWaitOfAllThreads) {
  slowdown_.delay = absl::Hours(1);
  std::thread stopper([this] {
    while (shards_[1]->pulls().empty()) std::this_thread::yield();
    interruption_.Stop();
  });

  const absl::Status status = Run(12);
  stopper.join();

  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(shards_[0]->taken().size(), 0u);
}

// The force is of the weights after all steps of the push, and these stay the worker's own.
TEST_P(HogwildTest, UnderElasticAveragingTheForceFollowsAllSteps) {
  run_.worker.algorithm = AlgorithmKind::kEasgd;
  run_.cluster.workers = 4;

  ASSERT_TRUE(Run(30).ok());

  const std::vector<FakeShard::Push> first = shards_[0]->taken();
  const std::vector<FakeShard::Push> second = shards_[1]->taken();
  ASSERT_EQ(first.size(), 5u);
  ASSERT_EQ(second.size(), 5u);
  std::vector<float> x = WeightsAt(0, 0);
  for (size_t push = 0; push < first.size(); ++push) {
    const std::vector<float> center =
        WeightsAt(first[push].header.base_version(), second[push].header.base_version());
    std::vector<float> pushed = first[push].values;
    pushed.insert(pushed.end(), second[push].values.begin(), second[push].values.end());
    for (size_t i = 0; i < x.size(); ++i) {
      const float force = 0.9f / 4 * (x[i] - center[i]);
      ASSERT_NEAR(pushed[i], -force, 1e-6) << "push " << push << ", value " << i;
      x[i] -= force;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, HogwildTest, testing::Values(Case{"OfTheProcessor", 1, false}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
