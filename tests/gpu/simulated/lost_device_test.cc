// What a worker's step does when its GPU fails in the midst of it.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "common/model/presets.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/simulated/work_queue.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"

namespace slipstream {
namespace {

class LostDeviceTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }
  void TearDown() override { simulated::WorkQueue::Get().LoseAfter(UINT64_MAX); }

  static void ExpectStepEndsWithAborted(Device& device, int lost) {
    const ModelSpec model = *FindPreset("lenet5");
    const NetShapes shapes = ShapesOf(model);
    const RandomBatch random(4, shapes.input().elements(), shapes.outputs(), 1);
    const auto plan = PrepareWithWeights(device, model, {.batch_size_max = 4});
    simulated::WorkQueue::Get().LoseAfter(GetParam(), lost);

    absl::Status status = plan->StartStep(random.batch(), nullptr);
    if (status.ok()) status = plan->FinishStep().status();

    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_NE(status.ToString().find("unspecified launch failure"), std::string::npos) << status;
  }

  const Gpu gpu_;
};

TEST_P(LostDeviceTest, EndsTheStepWithAborted) { ExpectStepEndsWithAborted(*gpu_.device, 0); }

// The others wait for it, but not for ever.
TEST_P(LostDeviceTest, EndsTheStepOfAGroup) {
  for (const int lost : {0, 1}) {
    const auto group = NewCudaDeviceGroup({0, 1});
    ASSERT_TRUE(group.ok()) << group.status();
    ExpectStepEndsWithAborted(**group, lost);
    simulated::WorkQueue::Get().LoseAfter(UINT64_MAX);
  }
}

// A step of this net is some forty pieces of work.
INSTANTIATE_TEST_SUITE_P(Pieces, LostDeviceTest, testing::Values(0, 1, 2, 5, 10, 20, 30));

}  // namespace
}  // namespace slipstream
