#include "worker/compute/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "common/model/model_spec.h"
#include "common/model/presets.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/small_nets.h"
#include "tests/worker/compute/training.h"

namespace slipstream {
namespace {

RandomBatch BatchFor(const ModelSpec& model, size_t count, uint64_t seed) {
  const NetShapes shapes = InferredShapes(model);
  return RandomBatch(count, shapes.input().elements(), shapes.outputs(), seed);
}

ModelSpec DroppingLenet() {
  ModelSpec model = *FindPreset("lenet5");
  model.layers.insert(model.layers.end() - 1, DropoutLayer{0.25f});
  return model;
}

struct Ranges : GradientListener {
  void OnGradientReady(ParameterRange range) override { ready.push_back(range); }
  std::vector<ParameterRange> ready;
};

class PresetTest : public testing::TestWithParam<std::string_view> {
 protected:
  const ModelSpec model_ = *FindPreset(GetParam());
  const NetShapes shapes_ = InferredShapes(model_);
  const std::unique_ptr<Device> device_ = NewCpuDevice();
};

TEST_P(PresetTest, LearnsInAFewSteps) {
  const RandomBatch random = BatchFor(model_, 32, 1);
  const auto plan = PrepareWithWeights(*device_, model_, {.batch_size_max = 32});

  const float before = plan->Evaluate(random.batch())->loss;
  for (int i = 0; i < 20; ++i) Descend(*plan, RunStep(*plan, random.batch()).gradients, 0.05f);
  const StepResult after = *plan->Evaluate(random.batch());

  EXPECT_NEAR(before, std::log(10.0f), 0.3);
  EXPECT_LT(after.loss, before - 0.02f);
  EXPECT_LE(after.correct, 32u);
}

TEST_P(PresetTest, ReportsEveryRangeOnceFromTheEndToTheBeginning) {
  const RandomBatch random = BatchFor(model_, 5, 1);
  const auto plan = PrepareWithWeights(*device_, model_, {.batch_size_max = 5});
  Ranges ranges;

  RunStep(*plan, random.batch(), &ranges);

  size_t end = shapes_.layout.parameters();
  for (const ParameterRange& range : ranges.ready) {
    EXPECT_EQ(range.end, end);
    EXPECT_LT(range.begin, range.end);
    end = range.begin;
  }
  EXPECT_EQ(end, 0u);
  EXPECT_EQ(ranges.ready.size(), shapes_.layout.tensors().size() / 2);
}

TEST_P(PresetTest, AgreesWithThePlainKernels) {
  // The plain kernels take a second for a hundred images of the larger net.
  const bool is_small = GetParam() != "cifar_quick";
  const std::vector<size_t> counts =
      is_small ? std::vector<size_t>{1, 3, 31, 32, 63, 64, 65} : std::vector<size_t>{1, 3, 17};
  for (const size_t count : counts) {
    SCOPED_TRACE(count);
    const RandomBatch random = BatchFor(model_, count, count);
    const auto fast = PrepareWithWeights(*device_, model_, {.batch_size_max = 65});
    const auto plain =
        PrepareWithWeights(*NewCpuDevice(CpuKernels::kPlain), model_, {.batch_size_max = 70});

    const Step fast_step = RunStep(*fast, random.batch());
    const Step plain_step = RunStep(*plain, random.batch());

    // The sums have up to 3 · 10⁴ products (a kernel's weight over a batch of images), in another
    // order.
    EXPECT_NEAR(fast_step.result.loss, plain_step.result.loss, 1e-5);
    EXPECT_EQ(fast_step.result.correct, plain_step.result.correct);
    ExpectGradientsNear(shapes_.layout, fast_step.gradients, plain_step.gradients, 1e-4f);
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, PresetTest, testing::ValuesIn(QuickPresets()),
                         [](const auto& preset) { return std::string(preset.param); });

class RepeatabilityTest : public testing::TestWithParam<std::string> {
 protected:
  static ModelSpec Model() {
    return GetParam() == "dropout" ? DroppingLenet() : *FindPreset(GetParam());
  }

  static void ExpectEvaluates(Plan& plan, const Batch& batch) {
    const auto result = plan.Evaluate(batch);
    EXPECT_TRUE(result.ok()) << result.status().ToString();
  }

  // Returns the weights after steps of several batch sizes, one after another.
  static std::vector<float> Train(const PlanOptions& options, bool evaluates) {
    const ModelSpec model = Model();
    const auto plan = PrepareWithWeights(*NewCpuDevice(), model, options);
    const RandomBatch test = BatchFor(model, options.batch_size_max, 99);
    for (const size_t count : {33, 33, 7, 70, 33, 1}) {
      const RandomBatch random = BatchFor(model, count, count);
      if (evaluates) ExpectEvaluates(*plan, test.batch());
      EXPECT_TRUE(plan->StartStep(random.batch(), nullptr).ok());
      if (evaluates) ExpectEvaluates(*plan, test.first(5));
      EXPECT_TRUE(plan->FinishStep().ok());
      if (evaluates) ExpectEvaluates(*plan, test.first(2));
      Descend(*plan, plan->gradients_host(), 0.01f);
    }
    return {plan->weights_host().begin(), plan->weights_host().end()};
  }
};

TEST_P(RepeatabilityTest, NothingButTheBatchesDecidesTheBits) {
  const std::vector<float> weights = Train({.batch_size_max = 70}, false);

  EXPECT_EQ(Train({.batch_size_max = 70}, false), weights) << "run again";
  EXPECT_EQ(Train({.batch_size_max = 70}, true), weights) << "with evaluations between";
  EXPECT_EQ(Train({.batch_size_max = 150}, false), weights) << "room for larger batches";
}

TEST_P(RepeatabilityTest, ExamplesMayLieAtAnyAddress) {
  const ModelSpec model = Model();
  const RandomBatch random = BatchFor(model, 9, 4);
  const auto plan = PrepareWithWeights(*NewCpuDevice(), model, {.batch_size_max = 9});
  const std::vector<float> gradients = RunStep(*plan, random.batch()).gradients;
  const std::span<const float> examples = random.batch().examples;

  for (size_t shift = 1; shift < 17; shift += 5) {
    std::vector<float> shifted(shift);
    shifted.insert(shifted.end(), examples.begin(), examples.end());
    Batch batch = random.batch();
    batch.examples = std::span(shifted).subspan(shift);

    EXPECT_EQ(RunStep(*plan, batch).gradients, gradients) << "shifted by " << shift;
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, RepeatabilityTest,
                         testing::Values("mlp", "lenet5", "cifar_quick", "dropout"),
                         [](const auto& net) { return net.param; });

size_t ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

// OpenMP would start a thread per core, and keep it.
TEST(CpuDeviceTest, StartsNoThreads) {
  const size_t threads_before = ThreadsOfThisProcess();

  for (const std::string_view preset : QuickPresets()) {
    const ModelSpec model = *FindPreset(preset);
    const RandomBatch random = BatchFor(model, 64, 1);
    for (const CpuKernels kernels : {CpuKernels::kFastest, CpuKernels::kOneDnn}) {
      const auto plan = PrepareWithWeights(*NewCpuDevice(kernels), model, {.batch_size_max = 64});
      RunStep(*plan, random.batch());
    }
  }

  EXPECT_EQ(ThreadsOfThisProcess(), threads_before);
}

TEST(CpuDeviceTest, DropoutActsInTrainingOnly) {
  const ModelSpec model = DroppingLenet();
  const RandomBatch random = BatchFor(model, 8, 3);
  Batch other = random.batch();
  other.index += 1;
  const auto plan = PrepareWithWeights(*NewCpuDevice(), model, {.batch_size_max = 8});

  EXPECT_EQ(plan->Evaluate(random.batch())->loss, plan->Evaluate(other)->loss);
  EXPECT_NE(RunStep(*plan, random.batch()).result.loss, RunStep(*plan, other).result.loss);
}

TEST(CpuDeviceTest, RefusesWhatDoesNotFitTheNet) {
  const ModelSpec model = *FindPreset("mlp");
  const RandomBatch random = BatchFor(model, 3, 1);
  const auto plan = PrepareWithWeights(*NewCpuDevice(), model, {.batch_size_max = 2});
  const std::vector<uint32_t> wrong_classes = {1, 10};
  Batch wrong_class = random.first(2);
  wrong_class.labels = wrong_classes;
  Batch wrong_size = random.first(2);
  wrong_size.examples = wrong_size.examples.first(1000);

  const Batch wrongs[] = {random.batch(), random.first(0), wrong_class, wrong_size};
  for (const Batch& wrong : wrongs) {
    EXPECT_EQ(plan->StartStep(wrong, nullptr).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(plan->Evaluate(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(plan->FinishStep().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CpuDeviceTest, RefusesNetsWhoseShapesDoNotFitTogether) {
  const ModelSpec model = {.preset = "", .input = {1, 4, 4}, .layers = {DenseLayer{3}}};

  const auto plan = NewCpuDevice()->Prepare(model, {});

  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
}

// Under a sanitizer, the allocator stops the program instead.
#ifndef SLIPSTREAM_SANITIZER
TEST(CpuDeviceTest, SaysHowManyBytesAreMissing) {
  const auto plan = NewCpuDevice()->Prepare(*FindPreset("mlp"), {.batch_size_max = 4'000'000'000});

  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(plan.status().ToString().find(" bytes"), std::string::npos);
}
#endif

TEST(CpuDeviceTest, APlanThatOnlyEvaluatesHasNoGradients) {
  const ModelSpec model = *FindPreset("lenet5");
  const RandomBatch random = BatchFor(model, 3, 1);
  const auto device = NewCpuDevice();
  const auto evaluator = PrepareWithWeights(*device, model, {.batch_size_max = 3, .trains = false});
  const auto trainer = PrepareWithWeights(*device, model, {.batch_size_max = 3});

  EXPECT_TRUE(evaluator->gradients_host().empty());
  EXPECT_EQ(evaluator->StartStep(random.batch(), nullptr).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(evaluator->Evaluate(random.batch())->loss, trainer->Evaluate(random.batch())->loss);
}

}  // namespace
}  // namespace slipstream
