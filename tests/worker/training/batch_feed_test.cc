#include "worker/training/batch_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/model/model_spec.h"
#include "tests/support/example_values.h"
#include "tests/support/fake_device.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/data/batch_order.h"
#include "worker/data/dataset.h"

namespace slipstream {
namespace {

constexpr uint32_t kBatchSize = 7;
constexpr uint64_t kSeed = 3;

Dataset Examples(size_t count, bool labelled) {
  Dataset data;
  data.shape = {1, 2, 2};
  data.outputs = 3;
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < 4; ++k) values.push_back(static_cast<float>(10 * i + k));
    if (labelled) data.labels.push_back(static_cast<uint32_t>(i % 3));
    for (size_t k = 0; k < 3 && !labelled; ++k) {
      data.targets.push_back(static_cast<float>(i) + 0.25f * static_cast<float>(k));
    }
  }
  data.examples = ExampleValues(std::move(values));
  return data;
}

ModelSpec Net(bool labelled) {
  ModelSpec model;
  model.input = {1, 2, 2};
  model.layers = {FlattenLayer{}, DenseLayer{.units = 3}};
  if (!labelled) model.loss = ModelSpec::Loss::kMse;
  return model;
}

/// Runs on the CPU, whose plans have no space for batches, and on a device whose plans have.
class BatchFeedTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Plan> Prepare(bool labelled) {
    return PrepareWithWeights(GetParam() ? *fake_ : *cpu_, Net(labelled),
                              {.batch_size_max = kBatchSize});
  }

  /// Expects that the batch has the examples that the run's order gives for `index`.
  static void ExpectBatch(const Batch& batch, const Dataset& data, uint64_t index) {
    BatchOrder order(data.count(), kBatchSize, kSeed);
    std::vector<float> examples;
    std::vector<uint32_t> labels;
    std::vector<float> targets;
    for (const uint32_t example : order.Examples(index)) {
      const std::vector<float> values = ExampleOf(data, example);
      examples.insert(examples.end(), values.begin(), values.end());
      if (data.is_labelled()) labels.push_back(data.labels[example]);
      targets.insert(targets.end(), data.target(example).begin(), data.target(example).end());
    }
    EXPECT_EQ(batch.index, index);
    EXPECT_EQ(std::vector(batch.examples.begin(), batch.examples.end()), examples) << index;
    EXPECT_EQ(std::vector(batch.labels.begin(), batch.labels.end()), labels) << index;
    EXPECT_EQ(std::vector(batch.targets.begin(), batch.targets.end()), targets) << index;
  }

  const std::unique_ptr<Device> cpu_ = NewCpuDevice();
  const std::unique_ptr<Device> fake_ = NewFakeDevice(*cpu_);
};

TEST_P(BatchFeedTest, GivesTheBatchesThatAreAskedFor) {
  for (const bool labelled : {true, false}) {
    const Dataset data = Examples(40, labelled);
    const std::unique_ptr<Plan> plan = Prepare(labelled);
    BatchFeed feed(data, kBatchSize, kSeed, *plan);
    // The last batch of an epoch has 5 examples. A worker beside two others takes every third
    // batch. A batch that was begun is asked for again. Then indices jump back and forth.
    for (const uint64_t index : {0, 1, 2, 3, 4, 5, 6, 9, 12, 15, 15, 18, 7, 100, 5}) {
      const Batch batch = feed.Take(index);
      ExpectBatch(batch, data, index);
      // Take it again, like a step that starts over.
      EXPECT_EQ(batch.examples.data(), feed.Take(index).examples.data());
      EXPECT_NEAR(RunStep(*plan, batch).result.loss, plan->Evaluate(batch)->loss, 1e-6);
    }
  }
}

TEST_P(BatchFeedTest, WhatFollowsInTheSameStrideIsThereAlready) {
  const Dataset data = Examples(40, true);
  const std::unique_ptr<Plan> plan = Prepare(true);
  BatchFeed feed(data, kBatchSize, kSeed, *plan);

  for (const uint64_t index : {0, 1, 2, 3}) feed.Take(index);
  EXPECT_EQ(feed.guessed(), GetParam() ? 3 : 0);
  for (const uint64_t index : {6, 9, 12, 15}) feed.Take(index);
  EXPECT_EQ(feed.guessed(), GetParam() ? 5 : 0) << "of 6 and 9 nobody knew yet";
  for (const uint64_t index : {400, 403, 406}) feed.Take(index);
  EXPECT_EQ(feed.guessed(), GetParam() ? 7 : 0) << "a jump is no stride";
}

/// Provides space `times` times and then no more, like a device that has been lost.
class ForgetfulPlan final : public Plan {
 public:
  ForgetfulPlan(std::unique_ptr<Plan> plan, int times) : plan_(std::move(plan)), times_(times) {}

  std::optional<BatchSpace> NewBatch(uint32_t count) override {
    return times_-- > 0 ? plan_->NewBatch(count) : std::nullopt;
  }
  void OfferBatch() override { plan_->OfferBatch(); }

  std::span<float> weights_host() override { return plan_->weights_host(); }
  void WeightsArrived(ParameterRange range) override { plan_->WeightsArrived(range); }
  void ExpectWeights() override { plan_->ExpectWeights(); }
  void RevokeWeights(ParameterRange range) override { plan_->RevokeWeights(range); }
  void AbandonWeights() override { plan_->AbandonWeights(); }
  std::span<float> gradients_host() override { return plan_->gradients_host(); }
  absl::Status StartStep(const Batch& batch, GradientListener* listener) override {
    return plan_->StartStep(batch, listener);
  }
  absl::StatusOr<StepResult> FinishStep() override { return plan_->FinishStep(); }
  absl::StatusOr<StepResult> Evaluate(const Batch& batch) override {
    return plan_->Evaluate(batch);
  }

 private:
  const std::unique_ptr<Plan> plan_;
  int times_;  // How many more times NewBatch provides space.
};

TEST_P(BatchFeedTest, GathersByItselfOnceThePlanHasNoSpaceAnyMore) {
  const Dataset data = Examples(40, true);
  for (int times = 0; times < 4; ++times) {
    ForgetfulPlan plan(Prepare(true), times);
    BatchFeed feed(data, kBatchSize, kSeed, plan);
    for (uint64_t index = 0; index < 8; ++index) ExpectBatch(feed.Take(index), data, index);
  }
}

INSTANTIATE_TEST_SUITE_P(PlanHasSpace, BatchFeedTest, testing::Bool());

TEST(BatchFeedOfKeptExamplesTest, NamesThemAndStepsAreThoseOfTheirValues) {
  const std::unique_ptr<Device> cpu = NewCpuDevice();
  const std::unique_ptr<Device> keeping = NewFakeDevice(*cpu, /*keeps_examples=*/true);
  for (const bool labelled : {true, false}) {
    const Dataset data = Examples(40, labelled);
    const PlanOptions options = {.batch_size_max = kBatchSize};
    const auto plan = PrepareWithWeights(*keeping, Net(labelled), options);
    const auto plain = PrepareWithWeights(*cpu, Net(labelled), options);
    BatchFeed feed(data, kBatchSize, kSeed, *plan);
    BatchFeed gathering(data, kBatchSize, kSeed, *plain);
    BatchOrder order(data.count(), kBatchSize, kSeed);
    for (const uint64_t index : {0, 1, 5, 5, 9, 4}) {
      const Batch batch = feed.Take(index);
      EXPECT_EQ(batch.index, index);
      EXPECT_TRUE(std::ranges::equal(batch.rows, order.Examples(index))) << index;
      EXPECT_TRUE(batch.examples.empty() && batch.labels.empty() && batch.targets.empty());
      EXPECT_EQ(RunStep(*plan, batch).gradients, RunStep(*plain, gathering.Take(index)).gradients);
    }
  }
}

}  // namespace
}  // namespace slipstream
