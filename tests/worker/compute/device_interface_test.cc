#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/model/presets.h"
#include "tests/support/fake_device.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cpu/cpu_device.h"

namespace slipstream {
namespace {

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

// A training loop that uses nothing but what the interface promises: it hands over new weights
// range by range and takes gradients as they are reported.
std::vector<float> Train(Device& device, const ModelSpec& model) {
  const NetShapes shapes = ShapesOf(model);
  const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 17});
  std::vector<float> gradients(shapes.layout.parameters());
  std::vector<float> history;
  for (const size_t count : {17, 17, 4, 17}) {
    const RandomBatch random(count, shapes.input().elements(), shapes.outputs(), count);
    CollectingListener listener(*plan, gradients);
    EXPECT_TRUE(plan->StartStep(random.batch(), &listener).ok());
    const auto result = plan->FinishStep();
    EXPECT_TRUE(result.ok());
    const auto evaluation = plan->Evaluate(random.batch());
    EXPECT_TRUE(evaluation.ok());
    history.push_back(result->loss);
    history.push_back(evaluation->loss);
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

class DeviceInterfaceTest : public testing::TestWithParam<std::string_view> {};

TEST_P(DeviceInterfaceTest, TrainingNeedsNoArenaThatTheHostCanAddress) {
  const ModelSpec model = *FindPreset(GetParam());
  const std::unique_ptr<Device> cpu = NewCpuDevice();
  const std::unique_ptr<Device> fake = NewFakeDevice(*cpu);

  EXPECT_EQ(Train(*fake, model), Train(*cpu, model));
}

// As above, but each step begins before its weights, which another thread hands over meanwhile, and
// notes that gradients come from the end of the arena to its beginning.
std::vector<float> TrainOverlapped(Device& device, const ModelSpec& model) {
  const NetShapes shapes = ShapesOf(model);
  const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 17});
  std::vector<float> gradients(shapes.layout.parameters());
  std::vector<float> history;
  std::thread lane;
  for (const size_t count : {17, 17, 4, 17}) {
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

TEST_P(DeviceInterfaceTest, AStepMayBeginBeforeItsWeightsHaveArrived) {
  const ModelSpec model = *FindPreset(GetParam());
  const std::unique_ptr<Device> cpu = NewCpuDevice();
  const std::unique_ptr<Device> fake = NewFakeDevice(*cpu);

  const std::vector<float> overlapped = TrainOverlapped(*cpu, model);

  EXPECT_EQ(TrainOverlapped(*fake, model), overlapped);
  // The other loop has an evaluation's loss after each step's.
  std::vector<float> serial = Train(*cpu, model);
  for (int i = 0; i < 4; ++i) serial.erase(serial.begin() + i + 1);
  EXPECT_EQ(overlapped, serial);
}

TEST_P(DeviceInterfaceTest, RevokedWeightsEndAStepThatStartsOverWithOthers) {
  const ModelSpec model = *FindPreset(GetParam());
  const NetShapes shapes = ShapesOf(model);
  const ParameterRange all = {0, shapes.layout.parameters()};
  const RandomBatch random(8, shapes.input().elements(), shapes.outputs(), 1);
  const std::unique_ptr<Device> cpu = NewCpuDevice();
  const std::unique_ptr<Device> fake = NewFakeDevice(*cpu);
  for (Device* device : {cpu.get(), fake.get()}) {
    const auto plan = PrepareWithWeights(*device, model, {.batch_size_max = 8});
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
}

TEST_P(DeviceInterfaceTest, AStepDoesNotWaitForWeightsThatWillNotCome) {
  const ModelSpec model = *FindPreset(GetParam());
  const NetShapes shapes = ShapesOf(model);
  const RandomBatch random(8, shapes.input().elements(), shapes.outputs(), 1);
  const std::unique_ptr<Device> cpu = NewCpuDevice();
  const std::unique_ptr<Device> fake = NewFakeDevice(*cpu);
  for (Device* device : {cpu.get(), fake.get()}) {
    const auto plan = PrepareWithWeights(*device, model, {.batch_size_max = 8});
    plan->ExpectWeights();
    std::thread lane([&] { plan->AbandonWeights(); });

    absl::Status status = plan->StartStep(random.batch(), nullptr);
    if (status.ok()) status = plan->FinishStep().status();
    lane.join();

    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, DeviceInterfaceTest, testing::ValuesIn(PresetNames()),
                         [](const auto& preset) { return std::string(preset.param); });

/// Holds the step back until told to go on.
class WaitingListener final : public GradientListener {
 public:
  void OnGradientReady(ParameterRange) override {
    caller_ = std::this_thread::get_id();
    go_on_.get_future().wait();
  }

  void GoOn() { go_on_.set_value(); }
  std::thread::id caller() const { return caller_; }

 private:
  std::promise<void> go_on_;
  std::thread::id caller_;
};

TEST(FakeDeviceTest, ReturnsFromStartStepWhileTheStepRuns) {
  const ModelSpec model = {.preset = "", .input = {4, 1, 1}, .layers = {DenseLayer{3}}};
  const RandomBatch random(2, 4, 3, 1);
  const std::unique_ptr<Device> cpu = NewCpuDevice();
  const std::unique_ptr<Device> fake = NewFakeDevice(*cpu);
  const auto plan = PrepareWithWeights(*fake, model, {.batch_size_max = 2});
  WaitingListener listener;

  // Would never return if the step ran inside.
  ASSERT_TRUE(plan->StartStep(random.batch(), &listener).ok());
  listener.GoOn();

  EXPECT_TRUE(plan->FinishStep().ok());
  EXPECT_NE(listener.caller(), std::this_thread::get_id());
}

}  // namespace
}  // namespace slipstream
