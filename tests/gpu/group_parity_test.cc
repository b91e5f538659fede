// Compares several GPUs that compute for one worker with a single GPU. A group of one works
// wherever there is a GPU. Larger groups are skipped where there are fewer GPUs.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "common/model/presets.h"
#include "tests/gpu/gpu.h"
#include "tests/worker/compute/interface_training.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/small_nets.h"
#include "tests/worker/compute/training.h"

namespace slipstream {
namespace {

/// The parameters are the number of GPUs, and a net.
class GroupNetTest : public testing::TestWithParam<std::tuple<uint32_t, SmallNet>> {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }

  const SmallNet& net() const { return std::get<1>(GetParam()); }

  const Gpu gpu_ = GroupOf(std::get<0>(GetParam()));
};

TEST_P(GroupNetTest, GradientIsTheDerivativeOfTheLoss) {
  ExpectGradientIsTheDerivativeOfTheLoss(*gpu_.device, net());
}

INSTANTIATE_TEST_SUITE_P(Nets, GroupNetTest,
                         testing::Combine(testing::Values(3), testing::ValuesIn(SmallNets())),
                         [](const auto& test) {
                           return std::get<1>(test.param).name +
                                  std::to_string(std::get<0>(test.param));
                         });

class GroupTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }

  const Gpu gpu_ = GroupOf(GetParam());
  const ModelSpec model_ = *FindPreset("lenet5");
  const NetShapes shapes_ = InferredShapes(model_);
};

// Some batches have fewer examples than there are GPUs, which leaves some GPUs without any.
TEST_P(GroupTest, AgreesWithOneGpu) {
  const Gpu alone;
  const PlanOptions options = {.batch_size_max = 65};
  const auto ours = PrepareWithWeights(*gpu_.device, model_, options);
  const auto theirs = PrepareWithWeights(*alone.device, model_, options);
  for (const size_t count : {1, 2, 4, 65, 3}) {
    SCOPED_TRACE(count);
    const RandomBatch random(count, shapes_.input().elements(), shapes_.outputs(), count);

    const Step here = RunStep(*ours, random.batch());
    const Step there = RunStep(*theirs, random.batch());

    EXPECT_NEAR(here.result.loss, there.result.loss, 1e-5);
    EXPECT_EQ(here.result.correct, there.result.correct);
    ExpectGradientsNear(shapes_.layout, here.gradients, there.gradients, 1e-4f);
    const auto evaluated_here = ours->Evaluate(random.batch());
    const auto evaluated_there = theirs->Evaluate(random.batch());
    ASSERT_TRUE(evaluated_here.ok() && evaluated_there.ok());
    EXPECT_NEAR(evaluated_here->loss, evaluated_there->loss, 1e-5);
    EXPECT_EQ(evaluated_here->correct, evaluated_there->correct);
  }
}

TEST_P(GroupTest, EqualBatchesGiveEqualBits) {
  const std::vector<float> history = Train(*gpu_.device, model_);

  EXPECT_EQ(Train(*gpu_.device, model_), history);
  EXPECT_EQ(TrainOverlapped(*gpu_.device, model_), WithoutEvaluations(history));
}

// Small batches leave the first GPU, or all but the last, without work.
TEST_P(GroupTest, AStepThatWaitsComputesTheSame) {
  for (const size_t count : {17, 1, 2}) {
    ExpectWaitingStepComputesTheSame(*gpu_.device, model_, count);
  }
}

TEST_P(GroupTest, RevokedWeightsEndAStepThatStartsOverWithOthers) {
  ExpectRevokedStepStartsOver(*gpu_.device, model_);
}

TEST_P(GroupTest, GradientsMayComeDownToWhereOthersReadThem) {
  ExpectGradientsInSharedMemory(*gpu_.device, model_);
}

TEST_P(GroupTest, AStepDoesNotWaitForWeightsThatWillNotCome) {
  ExpectAbandonedStepEnds(*gpu_.device, model_);
}

TEST_P(GroupTest, ABatchThatWentUpBeforeItsStepIsLikeAnyOther) {
  for (const size_t net : {0, 5}) {
    ExpectOfferedBatchesChangeNothing(*gpu_.device, SmallNets()[net].Model(), 1);
  }
}

TEST_P(GroupTest, ABatchOfKeptExamplesIsLikeAnyOther) {
  for (const size_t net : {0, 5}) {
    ExpectKeptExamplesChangeNothing(*gpu_.device, SmallNets()[net].Model(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, GroupTest, testing::Values(1, 2, 3),
                         testing::PrintToStringParamName());

class GroupOfOneTest : public testing::Test {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }

  const Gpu gpu_ = GroupOf(1);
};

TEST_F(GroupOfOneTest, GivesTheBitsOfOneAlone) {
  const Gpu alone;
  for (const char* preset : {"mlp", "lenet5"}) {
    const ModelSpec model = *FindPreset(preset);
    EXPECT_EQ(Train(*gpu_.device, model), Train(*alone.device, model));
  }
}

TEST_F(GroupOfOneTest, AGpuThatIsNamedTwiceIsRefused) {
  const auto device = NewCudaDeviceGroup({0, 0});

  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(device.status().ToString().find("GPU 0 is named twice"), std::string::npos);
}

}  // namespace
}  // namespace slipstream
