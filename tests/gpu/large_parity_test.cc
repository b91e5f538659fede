#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/presets.h"
#include "tests/gpu/gpu.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cpu/cpu_device.h"

namespace slipstream {
namespace {

/// Presets with so many products that a processor takes seconds for a step.
class LargePresetTest : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }

  const Gpu gpu_;
  const ModelSpec model_ = *FindPreset(GetParam());
  const NetShapes shapes_ = InferredShapes(model_);
  const std::unique_ptr<Device> cpu_ = NewCpuDevice();
};

TEST_P(LargePresetTest, AStepAgreesWithTheProcessors) {
  constexpr size_t kCount = 3;
  const RandomBatch random(kCount, shapes_.input().elements(), shapes_.outputs(), 1);
  const PlanOptions options = {.batch_size_max = kCount};

  const Step ours = RunStep(*PrepareWithWeights(*gpu_.device, model_, options), random.batch());
  const Step theirs = RunStep(*PrepareWithWeights(*cpu_, model_, options), random.batch());

  EXPECT_NEAR(ours.result.loss, theirs.result.loss, 1e-4);
  double distance = 0;
  double norm = 0;
  for (size_t i = 0; i < ours.gradients.size(); ++i) {
    distance += std::pow(double{ours.gradients[i]} - theirs.gradients[i], 2);
    norm += std::pow(double{theirs.gradients[i]}, 2);
  }
  // Some values lie so near to a ReLU's 0, or to another value of their pool, that the last digit
  // decides the result.
  EXPECT_LT(std::sqrt(distance), 0.01 * std::sqrt(norm));
}

TEST_P(LargePresetTest, EqualBatchesGiveEqualBits) {
  const RandomBatch random(16, shapes_.input().elements(), shapes_.outputs(), 2);
  const auto plan = PrepareWithWeights(*gpu_.device, model_, {.batch_size_max = 16});

  const Step first = RunStep(*plan, random.batch());

  EXPECT_EQ(RunStep(*plan, random.batch()).gradients, first.gradients);
}

INSTANTIATE_TEST_SUITE_P(Presets, LargePresetTest, testing::Values("vgg_small", "alexnet"),
                         [](const auto& preset) { return std::string(preset.param); });

}  // namespace
}  // namespace slipstream
