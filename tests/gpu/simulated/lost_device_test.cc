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

  const Gpu gpu_;
};

TEST_P(LostDeviceTest, EndsTheStepWithAborted) {
  const ModelSpec model = *FindPreset("lenet5");
  const NetShapes shapes = ShapesOf(model);
  const RandomBatch random(4, shapes.input().elements(), shapes.outputs(), 1);
  const auto plan = PrepareWithWeights(*gpu_.device, model, {.batch_size_max = 4});
  simulated::WorkQueue::Get().LoseAfter(GetParam());

  absl::Status status = plan->StartStep(random.batch(), nullptr);
  if (status.ok()) status = plan->FinishStep().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_NE(status.ToString().find("unspecified launch failure"), std::string::npos) << status;
}

// A step of this net is some forty pieces of work.
INSTANTIATE_TEST_SUITE_P(Pieces, LostDeviceTest, testing::Values(0, 1, 2, 5, 10, 20, 30));

}  // namespace
}  // namespace slipstream
