#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/model/presets.h"
#include "tests/support/fake_device.h"
#include "tests/worker/compute/interface_training.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/small_nets.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cpu/cpu_device.h"

namespace slipstream {
namespace {

class DeviceInterfaceTest : public testing::TestWithParam<std::string_view> {
 protected:
  const ModelSpec model_ = *FindPreset(GetParam());
  const std::unique_ptr<Device> cpu_ = NewCpuDevice();
  const std::unique_ptr<Device> fake_ = NewFakeDevice(*cpu_);
};

TEST_P(DeviceInterfaceTest, TrainingNeedsNoArenaThatTheHostCanAddress) {
  EXPECT_EQ(Train(*fake_, model_), Train(*cpu_, model_));
}

TEST_P(DeviceInterfaceTest, AStepMayBeginBeforeItsWeightsHaveArrived) {
  const std::vector<float> overlapped = TrainOverlapped(*cpu_, model_);

  EXPECT_EQ(TrainOverlapped(*fake_, model_), overlapped);
  EXPECT_EQ(overlapped, WithoutEvaluations(Train(*cpu_, model_)));
}

TEST_P(DeviceInterfaceTest, RevokedWeightsEndAStepThatStartsOverWithOthers) {
  ExpectRevokedStepStartsOver(*cpu_, model_);
  ExpectRevokedStepStartsOver(*fake_, model_);
}

TEST_P(DeviceInterfaceTest, AStepDoesNotWaitForWeightsThatWillNotCome) {
  ExpectAbandonedStepEnds(*cpu_, model_);
  ExpectAbandonedStepEnds(*fake_, model_);
}

TEST_P(DeviceInterfaceTest, GradientsMayLieWhereOthersReadThem) {
  ExpectGradientsInSharedMemory(*cpu_, model_);
}

TEST(FakeDeviceTest, ABatchThatWasOfferedIsLikeAnyOther) {
  const std::unique_ptr<Device> cpu = NewCpuDevice();
  const std::unique_ptr<Device> fake = NewFakeDevice(*cpu);
  for (const SmallNet& net : SmallNets()) {
    SCOPED_TRACE(net.name);
    ExpectOfferedBatchesChangeNothing(*fake, net.Model(), 1);
  }
}

TEST(FakeDeviceTest, ABatchOfKeptExamplesIsLikeAnyOther) {
  const std::unique_ptr<Device> cpu = NewCpuDevice();
  const std::unique_ptr<Device> fake = NewFakeDevice(*cpu, /*keeps_examples=*/true);
  for (const SmallNet& net : SmallNets()) {
    SCOPED_TRACE(net.name);
    ExpectKeptExamplesChangeNothing(*fake, net.Model(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, DeviceInterfaceTest, testing::ValuesIn(QuickPresets()),
                         [](const auto& preset) { return std::string(preset.param); });

/// Blocks the step until GoOn.
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

  // StartStep would never return if it ran the step itself.
  ASSERT_TRUE(plan->StartStep(random.batch(), &listener).ok());
  listener.GoOn();

  EXPECT_TRUE(plan->FinishStep().ok());
  EXPECT_NE(listener.caller(), std::this_thread::get_id());
}

}  // namespace
}  // namespace slipstream
