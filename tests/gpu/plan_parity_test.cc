#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/local/shared_arena.h"
#include "common/model/presets.h"
#include "tests/gpu/gpu.h"
#include "tests/support/example_values.h"
#include "tests/worker/compute/interface_training.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/small_nets.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/compute/cuda/kept_examples.h"

namespace slipstream {
namespace {

class SmallNetTest : public testing::TestWithParam<SmallNet> {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }

  const Gpu gpu_;
};

TEST_P(SmallNetTest, GradientIsTheDerivativeOfTheLoss) {
  ExpectGradientIsTheDerivativeOfTheLoss(*gpu_.device, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Nets, SmallNetTest, testing::ValuesIn(SmallNets()),
                         [](const auto& net) { return net.param.name; });

using FirstLayerTest = SmallNetTest;

TEST_P(FirstLayerTest, ABatchThatWentUpBeforeItsStepIsLikeAnyOther) {
  ExpectOfferedBatchesChangeNothing(*gpu_.device, GetParam().Model(), 1);
}

TEST_P(FirstLayerTest, ABatchOfKeptExamplesIsLikeAnyOther) {
  ExpectKeptExamplesChangeNothing(*gpu_.device, GetParam().Model(), 1);
}

INSTANTIATE_TEST_SUITE_P(Nets, FirstLayerTest, testing::ValuesIn(NetsByFirstLayer()),
                         [](const auto& net) { return net.param.name; });

double Norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

double Distance(std::span<const float> one, std::span<const float> other) {
  std::vector<float> difference(one.begin(), one.end());
  for (size_t i = 0; i < difference.size(); ++i) difference[i] -= other[i];
  return Norm(difference);
}

class PresetTest : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }

  RandomBatch RandomOf(size_t count) const {
    return RandomBatch(count, shapes_.input().elements(), shapes_.outputs(), count);
  }

  static void ExpectLossNear(Plan& ours, Plan& theirs, const Batch& batch) {
    const auto here = ours.Evaluate(batch);
    const auto there = theirs.Evaluate(batch);
    ASSERT_TRUE(here.ok() && there.ok()) << here.status() << there.status();
    EXPECT_NEAR(here->loss, there->loss, 1e-5);
  }

  Step StepOf(Device& device, const PlanOptions& options, const Batch& batch) const {
    return RunStep(*PrepareWithWeights(device, model_, options), batch);
  }

  const Gpu gpu_;
  const ModelSpec model_ = *FindPreset(GetParam());
  const NetShapes shapes_ = InferredShapes(model_);
  const std::unique_ptr<Device> cpu_ = NewCpuDevice();
};

TEST_P(PresetTest, AgreesWithTheProcessor) {
  const PlanOptions options = {.batch_size_max = 257};
  const auto gpu = PrepareWithWeights(*gpu_.device, model_, options);
  const auto cpu = PrepareWithWeights(*cpu_, model_, options);
  std::vector<size_t> counts = {1, 3, 64, 257};
  // A simulated GPU takes half a minute for that many examples of cifar_quick.
  if (GetParam() != "cifar_quick") counts.insert(counts.end(), {255, 256});
  for (const size_t count : counts) {
    SCOPED_TRACE(count);
    const RandomBatch random = RandomOf(count);

    const Step ours = RunStep(*gpu, random.batch());
    const Step theirs = RunStep(*cpu, random.batch());

    // The sums have up to 3 · 10⁵ products (a kernel's weight over a batch of images), in another
    // order.
    EXPECT_NEAR(ours.result.loss, theirs.result.loss, 1e-5);
    EXPECT_EQ(ours.result.correct, theirs.result.correct);
    ExpectLossNear(*gpu, *cpu, random.batch());
    // Some values lie so near to a ReLU's 0, or to another value of their pool, that the last digit
    // decides the result. They are few, but the gradients behind them differ by more than rounding.
    EXPECT_LT(Distance(ours.gradients, theirs.gradients), 0.01 * Norm(theirs.gradients));
  }
}

// Steps that are not finite are left out; if a NaN were hidden, a net that has diverged would go on
// training. cuBLAS's ReLU turns a NaN into 0, but the NaN still shows in the gradient of the
// layer's weights.
TEST_P(PresetTest, ANanShowsInTheLossOrInTheGradient) {
  const RandomBatch random = RandomOf(4);
  std::vector<float> examples(random.batch().examples.begin(), random.batch().examples.end());
  // Set a whole example to NaN, whichever of its values the pools keep.
  for (size_t i = 0; i < shapes_.input().elements(); ++i) examples[i] = std::nanf("");
  Batch batch = random.batch();
  batch.examples = examples;

  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    const Step step = StepOf(*gpu_.device, {.batch_size_max = 4, .precision = precision}, batch);
    const bool is_hidden =
        std::isfinite(step.result.loss) &&
        std::ranges::all_of(step.gradients, [](float g) { return std::isfinite(g); });
    EXPECT_FALSE(is_hidden) << "loss " << step.result.loss;
  }
}

TEST_P(PresetTest, RoundedOperandsCostAFewPercentOfTheNorm) {
  const RandomBatch random = RandomOf(64);
  const Step exact = StepOf(*cpu_, {.batch_size_max = 64}, random.batch());
  // Most of the difference comes from ReLUs and pools that decide differently. It was 0.04 and 0.06
  // of lenet5's norm when the rounding was imitated on a CPU.
  for (const auto& [precision, share] :
       {std::pair{Precision::kTf32, 0.08}, std::pair{Precision::kBf16, 0.12}}) {
    const Step rounded =
        StepOf(*gpu_.device, {.batch_size_max = 64, .precision = precision}, random.batch());

    EXPECT_NEAR(rounded.result.loss, exact.result.loss, 0.02);
    EXPECT_LT(Distance(rounded.gradients, exact.gradients), share * Norm(exact.gradients));
  }
}

TEST_P(PresetTest, AStepThatWaitsComputesTheSame) {
  ExpectWaitingStepComputesTheSame(*gpu_.device, model_, 17);
}

TEST_P(PresetTest, SumsInAnyOrderAreNearTheOthers) {
  const RandomBatch random = RandomOf(3);
  const Step exact = StepOf(*gpu_.device, {.batch_size_max = 3}, random.batch());
  const Step any =
      StepOf(*gpu_.device, {.batch_size_max = 3, .deterministic = false}, random.batch());

  // Winograd's and Fourier's algorithms lose some digits, which may change the choice of a pool.
  EXPECT_NEAR(any.result.loss, exact.result.loss, 1e-3);
  EXPECT_LT(Distance(any.gradients, exact.gradients), 0.02 * Norm(exact.gradients));
}

TEST_P(PresetTest, EqualBatchesGiveEqualBits) {
  const std::vector<float> history = Train(*gpu_.device, model_);

  EXPECT_EQ(Train(*gpu_.device, model_), history);
  EXPECT_EQ(TrainOverlapped(*gpu_.device, model_), WithoutEvaluations(history));
}

TEST_P(PresetTest, TrainsAsTheProcessorDoes) {
  const std::vector<float> ours = Train(*gpu_.device, model_);
  const std::vector<float> theirs = Train(*cpu_, model_);

  ASSERT_EQ(ours.size(), theirs.size());
  // The differences of four steps are like those of one.
  for (size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], 1e-4) << i;
}

TEST_P(PresetTest, RevokedWeightsEndAStepThatStartsOverWithOthers) {
  ExpectRevokedStepStartsOver(*gpu_.device, model_);
}

TEST_P(PresetTest, GradientsMayComeDownToWhereOthersReadThem) {
  ExpectGradientsInSharedMemory(*gpu_.device, model_);
}

TEST_P(PresetTest, AStepDoesNotWaitForWeightsThatWillNotCome) {
  ExpectAbandonedStepEnds(*gpu_.device, model_);
}

INSTANTIATE_TEST_SUITE_P(Presets, PresetTest, testing::ValuesIn(QuickPresets()),
                         [](const auto& preset) { return std::string(preset.param); });

class CudaPlanTest : public testing::Test {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }

  static size_t FreeBytes() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return free;
  }

  const Gpu gpu_;
  const ModelSpec model_ = *FindPreset("lenet5");
};

TEST_F(CudaPlanTest, SaysHowManyBytesAreMissing) {
  const auto plan = gpu_.device->Prepare(model_, {.batch_size_max = 400'000'000});

  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted) << plan.status();
  EXPECT_NE(plan.status().ToString().find(" bytes of "), std::string::npos) << plan.status();
  EXPECT_TRUE(gpu_.device->Prepare(model_, {.batch_size_max = 4}).ok()) << "it can go on";
}

TEST_F(CudaPlanTest, TakesMemoryOfItsOwnWhereTheCallersCannotBePinned) {
  const NetShapes shapes = InferredShapes(model_);
  const RandomBatch random(2, shapes.input().elements(), shapes.outputs(), 1);
  const SharedArena arena = SharedArena::Make(1, shapes.layout.parameters()).value();
  const std::span<float> part = arena.part(0);
  // Register the memory here, since memory can be registered only once.
  ASSERT_EQ(cudaHostRegister(part.data(), part.size_bytes(), cudaHostRegisterDefault), cudaSuccess);

  const auto plan =
      PrepareWithWeights(*gpu_.device, model_, {.batch_size_max = 2, .gradients = part});
  EXPECT_NE(plan->gradients_host().data(), part.data());
  EXPECT_EQ(plan->gradients_host().size(), part.size());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the next launch would be blamed for it";
  EXPECT_GT(LargestMagnitude(RunStep(*plan, random.batch()).gradients), 0);
  EXPECT_EQ(LargestMagnitude(part), 0);
  EXPECT_EQ(cudaHostUnregister(part.data()), cudaSuccess);
}

TEST_F(CudaPlanTest, KeepsExamplesOnceForAllPlansAndOnlyWhereTheyLeaveRoom) {
  constexpr size_t kCount = 10'000;
  const size_t inputs = InferredShapes(model_).input().elements();
  const std::vector<float> examples(kCount * inputs);
  const std::vector<uint32_t> labels(kCount);
  const size_t bytes = examples.size() * sizeof(float);
  const PlanOptions options = {.batch_size_max = 2};
  const auto one = PrepareWithWeights(*gpu_.device, model_, options);
  const auto other = PrepareWithWeights(*gpu_.device, model_, options);
  const size_t before = FreeBytes();

  cuda::KeptExamples::free_share = size_t{1} << 40;
  EXPECT_FALSE(one->KeepExamples(TableOf(examples, labels)));
  cuda::KeptExamples::free_share = 4;
  EXPECT_TRUE(one->KeepExamples(TableOf(examples, labels)));
  EXPECT_TRUE(other->KeepExamples(TableOf(examples, labels)));
  EXPECT_LT(FreeBytes(), before - bytes / 2);
  EXPECT_GT(FreeBytes(), before - bytes - bytes / 2) << "kept once";

  const std::vector<float> fewer(inputs);
  EXPECT_FALSE(other->KeepExamples(TableOf(fewer, std::span(labels).first(1))))
      << "others are kept";
  const std::vector<uint32_t> rows = {0};
  EXPECT_FALSE(other->StartStep({.rows = rows}, nullptr).ok()) << "not by this one any more";
  const std::vector<uint32_t> wrong(kCount, 10);
  EXPECT_FALSE(other->KeepExamples(TableOf(examples, wrong))) << "the net has ten classes";
}

TEST_F(CudaPlanTest, RefusesWhatDoesNotFitTheNet) {
  const NetShapes shapes = InferredShapes(model_);
  const RandomBatch random(3, shapes.input().elements(), shapes.outputs(), 1);
  const auto plan = PrepareWithWeights(*gpu_.device, model_, {.batch_size_max = 2});

  EXPECT_EQ(plan->StartStep(random.batch(), nullptr).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(plan->Evaluate(random.batch()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(plan->FinishStep().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CudaPlanTest, ThereIsNoGpuOfThatNumber) {
  const auto device = NewCudaDevice(255);

  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(device.status().ToString().find("there is no GPU"), std::string::npos);
}

}  // namespace
}  // namespace slipstream
