// Tests a worker's step whose GPU fails in the middle of it.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "common/model/presets.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/simulated/streams.h"
#include "tests/gpu/simulated/work_queue.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"

namespace slipstream {
namespace {

class LostDeviceTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }
  void TearDown() override { simulated::WorkQueue::Get().LoseAfter(UINT64_MAX); }

  /// Runs a step during which the device `lost` is lost after this many pieces of work.
  static absl::Status RunLosing(Device& device, uint64_t pieces, int lost) {
    const ModelSpec model = *FindPreset("lenet5");
    const NetShapes shapes = InferredShapes(model);
    const RandomBatch random(4, shapes.input().elements(), shapes.outputs(), 1);
    const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 4});
    simulated::WorkQueue::Get().LoseAfter(pieces, lost);
    const absl::Status started = plan->StartStep(random.batch(), nullptr);
    return started.ok() ? plan->FinishStep().status() : started;
  }

  static void ExpectLoss(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_NE(status.ToString().find("unspecified launch failure"), std::string::npos) << status;
  }

  const Gpu gpu_;
};

TEST_P(LostDeviceTest, EndsTheStepWithAborted) {
  ExpectLoss(RunLosing(*gpu_.device, GetParam(), 0));
}

// A step of this net consists of some forty pieces of work.
INSTANTIATE_TEST_SUITE_P(Pieces, LostDeviceTest, testing::Values(0, 1, 2, 5, 10, 20, 30));

class LostMemberTest : public LostDeviceTest {};

// The other device waits for the lost one, but not for ever, even if the loss happens in the middle
// of a sum.
TEST_P(LostMemberTest, EndsTheStepOfItsGroup) {
  for (const int lost : {0, 1}) {
    const auto group = NewCudaDeviceGroup({0, 1});
    ASSERT_TRUE(group.ok()) << group.status();
    const absl::Status status = RunLosing(**group, GetParam(), lost);
    if (!status.ok()) ExpectLoss(status);
    EXPECT_TRUE(!status.ok() || GetParam() > 60) << "before it has done its part";
    simulated::WorkQueue::Get().LoseAfter(UINT64_MAX);
  }
}

INSTANTIATE_TEST_SUITE_P(Pieces, LostMemberTest, testing::Range<uint64_t>(0, 120, 8));

// If NCCL were not asked, the failure would be noticed only after minutes.
TEST(FailedSumTest, ASumThatNcclGivesUpEndsTheStep) {
  const auto group = NewCudaDeviceGroup({0, 1});
  ASSERT_TRUE(group.ok()) << group.status();
  const ModelSpec model = *FindPreset("lenet5");
  const NetShapes shapes = InferredShapes(model);
  const RandomBatch random(4, shapes.input().elements(), shapes.outputs(), 1);
  const auto plan = PrepareWithWeights(**group, model, {.batch_size_max = 4});
  absl::Status status;
  simulated::nccl_has_failed = true;
  // NCCL is asked every millisecond during a wait, so the failure may need several steps to show.
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = plan->StartStep(random.batch(), nullptr);
    if (status.ok()) status = plan->FinishStep().status();
  }
  simulated::nccl_has_failed = false;

  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_NE(status.ToString().find("NCCL"), std::string::npos) << status;
  ASSERT_TRUE(plan->StartStep(random.batch(), nullptr).ok());
  EXPECT_EQ(plan->FinishStep().status().code(), absl::StatusCode::kAborted) << "it stays so";
}

}  // namespace
}  // namespace slipstream
