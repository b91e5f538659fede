#include "tests/worker/compute/interface_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <thread>

#include "common/model/net_shapes.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"

namespace slipstream {
namespace {

constexpr int kSteps = 4;
constexpr size_t kCounts[kSteps] = {17, 17, 4, 17};

/// Applies each range of the gradient as it becomes ready, as a pusher would send it.
class CollectingListener final : public GradientListener {
 public:
  CollectingListener(const Plan& plan, std::vector<float>& collected)
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
  const Plan& plan_;
  std::vector<float>& collected_;
  size_t final_from_;
};

}  // namespace

std::vector<float> Train(Device& device, const ModelSpec& model) {
  const NetShapes shapes = ShapesOf(model);
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
  const NetShapes shapes = ShapesOf(model);
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
  const NetShapes shapes = ShapesOf(model);
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
  const NetShapes shapes = ShapesOf(model);
  const RandomBatch random(8, shapes.input().elements(), shapes.outputs(), 1);
  const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 8});
  plan->ExpectWeights();
  std::thread lane([&] { plan->AbandonWeights(); });

  absl::Status status = plan->StartStep(random.batch(), nullptr);
  if (status.ok()) status = plan->FinishStep().status();
  lane.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

}  // namespace slipstream
