#include "worker/training/test_measures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/model/presets.h"
#include "tests/worker/compute/small_nets.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cpu/cpu_device.h"

namespace slipstream {
namespace {

Dataset TestSet(const NetShapes& shapes, size_t count) {
  Dataset data;
  data.shape = shapes.input();
  data.outputs = shapes.outputs();
  const RandomBatch random(count, shapes.input().elements(), shapes.outputs(), 3);
  const std::span<const float> values = random.batch().examples;
  data.examples = ExampleValues({values.begin(), values.end()});
  data.labels.assign(random.batch().labels.begin(), random.batch().labels.end());
  return data;
}

class TestMeasuresTest : public testing::TestWithParam<std::string_view> {
 protected:
  const ModelSpec model_ = *FindPreset(GetParam());
  const NetShapes shapes_ = InferredShapes(model_);
  const std::unique_ptr<Device> device_ = NewCpuDevice();
  const std::unique_ptr<Plan> plan_ =
      PrepareWithWeights(*device_, model_, {.batch_size_max = kTestBatchSize, .trains = false});
};

TEST_P(TestMeasuresTest, AWeightThatIsNotFiniteGivesNoLoss) {
  const Dataset test = TestSet(shapes_, 4);
  const auto all = [](size_t) { return true; };
  ASSERT_TRUE(std::isfinite(MeasureOnTest(*plan_, test, all)->loss));

  // The weight is in the first layer, so pools and ReLUs lie between it and the loss.
  plan_->weights_host().front() = std::nanf("");
  plan_->WeightsArrived({0, shapes_.layout.parameters()});

  EXPECT_TRUE(std::isnan(MeasureOnTest(*plan_, test, all)->loss));
}

TEST_P(TestMeasuresTest, SaysHowFarItIsAndEndsWhenItIsTold) {
  const Dataset test = TestSet(shapes_, kTestBatchSize + 1);
  std::vector<size_t> measured;
  const auto once = [&](size_t examples) {
    measured.push_back(examples);
    return measured.size() < 2;
  };

  EXPECT_TRUE(absl::IsCancelled(MeasureOnTest(*plan_, test, once).status()));
  EXPECT_EQ(measured, (std::vector<size_t>{0, kTestBatchSize}));
}

INSTANTIATE_TEST_SUITE_P(Presets, TestMeasuresTest, testing::ValuesIn(QuickPresets()),
                         [](const auto& preset) { return std::string(preset.param); });

}  // namespace
}  // namespace slipstream
