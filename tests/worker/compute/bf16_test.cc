#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/model/model_spec.h"
#include "common/model/presets.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cpu/cpu_device.h"

namespace slipstream {
namespace {

constexpr PlanOptions kBf16 = {.batch_size_max = 33, .precision = Precision::kBf16};

/// Returns a net with every kind of layer between convolutions whose channels fill blocks.
ModelSpec WideNet() {
  return {.preset = "",
          .input = {16, 11, 11},
          .layers = {Conv2dLayer{32, 3, 1, 1}, TanhLayer{},
                     PoolLayer{PoolLayer::Kind::kMax, 3, 2, true}, Conv2dLayer{16, 3, 1, 0},
                     ReluLayer{}, PoolLayer{PoolLayer::Kind::kAverage, 2, 2, false}, FlattenLayer{},
                     DenseLayer{24}, TanhLayer{}, DropoutLayer{0.25f}, DenseLayer{10}}};
}

ModelSpec NetNamed(const std::string& name) {
  return name == "wide" ? WideNet() : *FindPreset(name);
}

double Norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

class Bf16Test : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!CpuComputesBf16()) GTEST_SKIP() << "this processor has no bf16";
  }

  RandomBatch RandomOf(size_t count) const {
    return RandomBatch(count, shapes_.input().elements(), shapes_.outputs(), count);
  }

  const ModelSpec model_ = NetNamed(GetParam());
  const NetShapes shapes_ = InferredShapes(model_);
  const std::unique_ptr<Device> device_ = NewCpuDevice();
};

TEST_P(Bf16Test, GradientsAreOffByAFewPercentOfTheirNorm) {
  const auto rounded = PrepareWithWeights(*device_, model_, kBf16);
  const auto exact = PrepareWithWeights(*device_, model_, {.batch_size_max = 33});
  for (const size_t count : {33, 1, 32}) {
    SCOPED_TRACE(count);
    const RandomBatch random = RandomOf(count);

    const Step ours = RunStep(*rounded, random.batch());
    const Step theirs = RunStep(*exact, random.batch());

    EXPECT_NEAR(ours.result.loss, theirs.result.loss, 0.02);
    std::vector<float> difference = theirs.gradients;
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= ours.gradients[i];
    EXPECT_LT(Norm(difference), 0.08 * Norm(theirs.gradients));
    // The images are random, so the terms of a bias's gradient nearly cancel, and its relative
    // error is larger.
    for (const Tensor& tensor : shapes_.layout.tensors()) {
      const auto part = [&](std::span<const float> all) {
        return Norm(all.subspan(tensor.offset, tensor.size()));
      };
      EXPECT_LT(part(difference), 0.25 * part(theirs.gradients)) << tensor.name;
    }
  }
}

TEST_P(Bf16Test, LearnsAsWell) {
  const RandomBatch random = RandomOf(32);
  const auto plan = PrepareWithWeights(*device_, model_, kBf16);

  const float before = plan->Evaluate(random.batch())->loss;
  for (int i = 0; i < 20; ++i) Descend(*plan, RunStep(*plan, random.batch()).gradients, 0.05f);

  EXPECT_LT(plan->Evaluate(random.batch())->loss, before - 0.02f);
}

TEST_P(Bf16Test, EqualInputsGiveEqualBitsWhateverWasComputedBefore) {
  const RandomBatch random = RandomOf(32);
  const auto fresh = PrepareWithWeights(*device_, model_, kBf16);
  const auto used = PrepareWithWeights(*device_, model_, kBf16);
  RunStep(*used, RandomOf(7).batch());

  EXPECT_EQ(RunStep(*fresh, random.batch()).gradients, RunStep(*used, random.batch()).gradients);
}

INSTANTIATE_TEST_SUITE_P(Nets, Bf16Test, testing::Values("mlp", "lenet5", "cifar_quick", "wide"),
                         [](const auto& net) { return net.param; });

TEST(Bf16Support, AProcessorWithoutBf16SaysWhatToDo) {
  const auto plan = NewCpuDevice()->Prepare(*FindPreset("mlp"), kBf16);
  if (CpuComputesBf16()) {
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return;
  }
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(plan.status().message().find("compute.precision"), std::string::npos);
}

}  // namespace
}  // namespace slipstream
