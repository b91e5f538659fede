#include "tests/worker/compute/interface_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/philox.h"
#include "common/local/shared_arena.h"
#include "common/model/net_shapes.h"
#include "tests/support/example_values.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"

namespace slipstream {
namespace {

constexpr int kSteps = 4;
constexpr size_t kCounts[kSteps] = {17, 17, 4, 17};

/// Collects each range of the gradient as it becomes ready, as a push would send it.
class CollectingListener final : public GradientListener {
 public:
  CollectingListener(Plan& plan, std::vector<float>& collected)
      : plan_(plan), collected_(collected), final_from_(collected.size()) {}

  size_t final_from() const { return final_from_; }

  void OnGradientReady(ParameterRange range) override {
    EXPECT_EQ(range.end, final_from_) << "from the end to the beginning, without gaps";
    final_from_ = range.begin;
    const auto ready = plan_.gradients_host().subspan(range.begin, range.size());
    std::copy(ready.begin(), ready.end(),
              collected_.begin() + static_cast<std::ptrdiff_t>(range.begin));
  }

 private:
  Plan& plan_;
  std::vector<float>& collected_;
  size_t final_from_;
};

}  // namespace

std::vector<float> Train(Device& device, const ModelSpec& model) {
  const NetShapes shapes = InferredShapes(model);
  const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 17});
  std::vector<float> gradients(shapes.layout.parameters());
  std::vector<float> history;
  for (const size_t count : kCounts) {
    const RandomBatch random(count, shapes.input().elements(), shapes.outputs(), count);
    CollectingListener listener(*plan, gradients);
    EXPECT_TRUE(plan->StartStep(random.batch(), &listener).ok());
    const auto result = plan->FinishStep();
    EXPECT_TRUE(result.ok());
    const auto evaluation = plan->Evaluate(random.batch());
    EXPECT_TRUE(evaluation.ok());
    history.push_back(result.value().loss);
    history.push_back(evaluation.value().loss);
    const std::span<float> weights = plan->weights_host();
    for (const Tensor& tensor : shapes.layout.tensors()) {
      const ParameterRange range = {tensor.offset, tensor.offset + tensor.size()};
      for (size_t i = range.begin; i < range.end; ++i) weights[i] -= 0.05f * gradients[i];
      plan->WeightsArrived(range);
    }
  }
  history.insert(history.end(), plan->weights_host().begin(), plan->weights_host().end());
  return history;
}

std::vector<float> TrainOverlapped(Device& device, const ModelSpec& model) {
  const NetShapes shapes = InferredShapes(model);
  const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 17});
  std::vector<float> gradients(shapes.layout.parameters());
  std::vector<float> history;
  std::thread lane;
  for (const size_t count : kCounts) {
    const RandomBatch random(count, shapes.input().elements(), shapes.outputs(), count);
    CollectingListener listener(*plan, gradients);
    EXPECT_TRUE(plan->StartStep(random.batch(), &listener).ok());
    const auto result = plan->FinishStep();
    EXPECT_TRUE(result.ok()) << result.status();
    if (lane.joinable()) lane.join();
    EXPECT_EQ(listener.final_from(), 0u);
    history.push_back(result->loss);
    plan->ExpectWeights();
    lane = std::thread([&plan, &gradients, &shapes] {
      const std::span<float> weights = plan->weights_host();
      for (const Tensor& tensor : shapes.layout.tensors()) {
        std::this_thread::yield();
        const ParameterRange range = {tensor.offset, tensor.offset + tensor.size()};
        for (size_t i = range.begin; i < range.end; ++i) weights[i] -= 0.05f * gradients[i];
        plan->WeightsArrived(range);
      }
    });
  }
  lane.join();
  history.insert(history.end(), plan->weights_host().begin(), plan->weights_host().end());
  return history;
}

std::vector<float> WithoutEvaluations(std::vector<float> history) {
  for (int i = 0; i < kSteps; ++i) history.erase(history.begin() + i + 1);
  return history;
}

void ExpectRevokedStepStartsOver(Device& device, const ModelSpec& model) {
  const NetShapes shapes = InferredShapes(model);
  const ParameterRange all = {0, shapes.layout.parameters()};
  const RandomBatch random(8, shapes.input().elements(), shapes.outputs(), 1);
  const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 8});
  const std::vector<float> initial(plan->weights_host().begin(), plan->weights_host().end());
  const Step expected = RunStep(*plan, random.batch());
  plan->ExpectWeights();
  const ParameterRange half = {0, all.end / 2};
  std::fill_n(plan->weights_host().begin(), half.size(), 1e30f);
  plan->WeightsArrived(half);
  std::thread lane([&] { plan->RevokeWeights(all); });

  absl::Status status = plan->StartStep(random.batch(), nullptr);
  if (status.ok()) status = plan->FinishStep().status();
  lane.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  std::copy(initial.begin(), initial.end(), plan->weights_host().begin());
  plan->WeightsArrived(all);

  EXPECT_EQ(RunStep(*plan, random.batch()).gradients, expected.gradients);
}

void ExpectAbandonedStepEnds(Device& device, const ModelSpec& model) {
  const NetShapes shapes = InferredShapes(model);
  const RandomBatch random(8, shapes.input().elements(), shapes.outputs(), 1);
  const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 8});
  const std::vector<float> gradients = RunStep(*plan, random.batch()).gradients;
  plan->ExpectWeights();
  std::thread lane([&] { plan->AbandonWeights(); });

  absl::Status status = plan->StartStep(random.first(5), nullptr);
  if (status.ok()) status = plan->FinishStep().status();
  lane.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_TRUE(std::ranges::equal(plan->gradients_host(), gradients));
}

namespace {

/// Offers the values of `batch` in the plan's own space. Returns the offered batch.
Batch Offer(Plan& plan, const Batch& batch, size_t count) {
  const std::optional<BatchSpace> space = plan.NewBatch(static_cast<uint32_t>(count));
  EXPECT_TRUE(space.has_value());
  std::ranges::copy(batch.examples, space->examples.begin());
  std::ranges::copy(batch.labels, space->labels.begin());
  std::ranges::copy(batch.targets, space->targets.begin());
  plan.OfferBatch();
  return {space->examples, space->labels, batch.index, space->targets};
}

/// Runs a step whose weights are revoked while it runs, or before. The same weights arrive again.
void RevokeStep(Plan& plan, const Batch& batch, ParameterRange all) {
  std::thread lane([&] {
    plan.RevokeWeights(all);
    plan.WeightsArrived(all);
  });
  const auto step = [&] {
    const absl::Status started = plan.StartStep(batch, nullptr);
    return started.ok() ? plan.FinishStep().status() : started;
  };
  absl::Status status = step();
  lane.join();
  if (status.ok()) status = step();  // The step had ended before the revocation.
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

}  // namespace

void ExpectWaitingStepComputesTheSame(Device& device, const ModelSpec& model, size_t count) {
  SCOPED_TRACE(testing::Message() << count << " examples");
  const NetShapes shapes = InferredShapes(model);
  const RandomBatch random(count, shapes.input().elements(), shapes.outputs(), count);
  const auto plan =
      PrepareWithWeights(device, model, {.batch_size_max = static_cast<uint32_t>(count)});
  const std::vector<float> expected = RunStep(*plan, random.batch()).gradients;
  const Tensor& last = shapes.layout.tensors().back();
  const ParameterRange late = {last.offset, last.offset + last.size()};
  absl::Duration waited;
  // Repeat, since the step may start after the weights have arrived.
  for (int i = 0; i < 100 && waited == absl::ZeroDuration(); ++i) {
    plan->ExpectWeights();
    plan->WeightsArrived({0, late.begin});
    std::thread lane([&] {
      for (int turn = 0; turn < 1000 * (i + 1); ++turn) std::this_thread::yield();
      plan->WeightsArrived(late);
    });
    const Step step = RunStep(*plan, random.batch());
    lane.join();
    waited = step.result.waited;
    EXPECT_EQ(step.gradients, expected);
  }
  EXPECT_GT(waited, absl::ZeroDuration());
}

void ExpectOfferedBatchesChangeNothing(Device& device, const ModelSpec& model, uint64_t seed) {
  constexpr uint32_t kCountMax = 9;
  constexpr int kBatches = 40;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const NetShapes shapes = InferredShapes(model);
  const ParameterRange all = {0, shapes.layout.parameters()};
  const PlanOptions options = {.batch_size_max = kCountMax};
  const auto plan = PrepareWithWeights(device, model, options);
  const auto plain = PrepareWithWeights(device, model, options);
  RandomStream random(seed, 0);
  const auto drawn = [&] {
    return RandomBatch(1 + random.Below(kCountMax), shapes.input().elements(), shapes.outputs(),
                       random.Below(1000));
  };
  const auto offer = [&](const RandomBatch& values) {
    const Batch batch = values.batch(model.loss);
    return Offer(*plan, batch, batch.examples.size() / shapes.input().elements());
  };
  RandomBatch values = drawn();
  Batch batch = offer(values);
  for (int i = 0; i < kBatches; ++i) {
    if (random.Below(4) == 0) RevokeStep(*plan, batch, all);
    ASSERT_TRUE(plan->StartStep(batch, nullptr).ok());
    RandomBatch next_values = drawn();
    Batch next = offer(next_values);
    ASSERT_TRUE(plan->FinishStep().ok());
    const std::vector<float> gradients(plan->gradients_host().begin(),
                                       plan->gradients_host().end());
    ASSERT_EQ(gradients, RunStep(*plain, values.batch(model.loss)).gradients) << i;
    while (random.Below(3) == 0) {  // The offer is replaced by another one.
      next_values = drawn();
      next = random.Below(2) == 0 ? next_values.batch(model.loss) : offer(next_values);
    }
    values = std::move(next_values);
    // A move leaves a vector's values at the same address.
    batch = next;
  }
}

namespace {

constexpr size_t kTableRows = 50;

/// The checks of ExpectKeptExamplesChangeNothing for the plans of one table.
class KeptExamplesTrial {
 public:
  KeptExamplesTrial(Device& device, const ModelSpec& model, const RandomBatch& table, uint64_t seed)
      : shapes_(InferredShapes(model)), table_(table.batch(model.loss)), random_(seed, 1) {
    for (std::unique_ptr<Plan>& plan : plans_) {
      plan = PrepareWithWeights(device, model, {.batch_size_max = kCountMax});
      EXPECT_TRUE(plan->KeepExamples(TableOf(table_.examples, table_.labels, table_.targets)));
    }
    plain_ = PrepareWithWeights(device, model, {.batch_size_max = kCountMax});
  }

  void Step() {
    Plan& plan = *plans_[random_.Below(2)];
    std::vector<uint32_t> rows(1 + random_.Below(kCountMax));
    for (uint32_t& row : rows) row = random_.Below(kTableRows);
    const Values values = ValuesOf(rows);
    const Batch by_value = {values.examples, values.labels, random_.Below(1000), values.targets};
    const Batch by_row = {.index = by_value.index, .rows = rows};
    const Batch& batch = random_.Below(4) == 0 ? by_value : by_row;
    if (random_.Below(4) == 0) RevokeStep(plan, batch, {0, shapes_.layout.parameters()});
    ASSERT_EQ(RunStep(plan, batch).gradients, RunStep(*plain_, by_value).gradients);
  }

  void ExpectRefusals() {
    const std::vector<uint32_t> beyond = {0, kTableRows};
    const std::vector<uint32_t> too_many(kCountMax + 1);
    for (const auto& rows : {beyond, too_many}) {
      EXPECT_EQ(plans_[0]->StartStep({.rows = rows}, nullptr).code(),
                absl::StatusCode::kInvalidArgument);
    }
    EXPECT_EQ(plain_->StartStep({.rows = std::span(too_many).first(1)}, nullptr).code(),
              absl::StatusCode::kInvalidArgument);
  }

 private:
  static constexpr uint32_t kCountMax = 4;

  struct Values {
    std::vector<float> examples;
    std::vector<uint32_t> labels;
    std::vector<float> targets;
  };

  Values ValuesOf(const std::vector<uint32_t>& rows) const {
    const auto append = [](auto& to, auto from, size_t row) {
      const size_t width = from.size() / kTableRows;
      const auto values = from.subspan(row * width, width);
      to.insert(to.end(), values.begin(), values.end());
    };
    Values values;
    for (const uint32_t row : rows) {
      append(values.examples, table_.examples, row);
      append(values.labels, table_.labels, row);
      append(values.targets, table_.targets, row);
    }
    return values;
  }

  const NetShapes shapes_;
  const Batch table_;
  RandomStream random_;
  std::array<std::unique_ptr<Plan>, 2> plans_;
  std::unique_ptr<Plan> plain_;
};

}  // namespace

void ExpectKeptExamplesChangeNothing(Device& device, const ModelSpec& model, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const NetShapes shapes = InferredShapes(model);
  RandomBatch table(kTableRows, shapes.input().elements(), shapes.outputs(), seed);
  for (const uint64_t use : {1, 2}) {
    {
      KeptExamplesTrial kept(device, model, table, seed + use);
      for (int i = 0; i < 12; ++i) kept.Step();
      kept.ExpectRefusals();
    }
    // Put other examples at the same addresses.
    const RandomBatch others(kTableRows, shapes.input().elements(), shapes.outputs(), seed + use);
    table.Assign(others);
  }
}

void ExpectGradientsInSharedMemory(Device& device, const ModelSpec& model) {
  const NetShapes shapes = InferredShapes(model);
  const RandomBatch random(7, shapes.input().elements(), shapes.outputs(), 1);
  const Step expected =
      RunStep(*PrepareWithWeights(device, model, {.batch_size_max = 7}), random.batch());
  const auto arena = SharedArena::Make(2, shapes.layout.parameters());
  ASSERT_TRUE(arena.ok()) << arena.status();
  for (int use = 0; use < 2; ++use) {  // The memory can be reused once the plans are gone.
    std::vector<std::unique_ptr<Plan>> plans;
    for (const size_t part : {0, 1}) {
      plans.push_back(
          PrepareWithWeights(device, model, {.batch_size_max = 7, .gradients = arena->part(part)}));
    }
    for (const size_t part : {0, 1}) {
      EXPECT_EQ(plans[part]->gradients_host().data(), arena->part(part).data());
      EXPECT_EQ(RunStep(*plans[part], random.batch()).gradients, expected.gradients);
    }
  }
}

}  // namespace slipstream
