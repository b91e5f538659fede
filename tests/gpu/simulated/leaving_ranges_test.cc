// Tests that gradients leave while backward goes on, from one GPU and as the sum of several.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "common/model/presets.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/simulated/work_queue.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cuda/device_context.h"

namespace slipstream {
namespace {

using simulated::WorkQueue;

/// Lets the devices finish their pass once it has been told of a range.
class Releaser : public GradientListener {
 public:
  void OnGradientReady(ParameterRange /*range*/) override {
    WorkQueue::Get().HoldGraphsAfter(UINT64_MAX);
    ++ranges_;
  }
  int ranges() const { return ranges_; }

 private:
  int ranges_ = 0;
};

/// The parameter is the number of GPUs in a group; 0 means one GPU without a group.
class LeavingRangesTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    PS_SKIP_WITHOUT_GPU();
    cuda::DeviceContext::wait_max = absl::Seconds(10);
  }
  void TearDown() override { WorkQueue::Get().HoldGraphsAfter(UINT64_MAX); }

  const Gpu gpu_ = GetParam() == 0 ? Gpu() : GroupOf(GetParam());
};

TEST_P(LeavingRangesTest, TheFirstIsToldOfBeforeThePassHasEnded) {
  const ModelSpec model = *FindPreset("lenet5");
  const NetShapes shapes = InferredShapes(model);
  const RandomBatch random(4, shapes.input().elements(), shapes.outputs(), 1);
  const auto plan = PrepareWithWeights(*gpu_.device, model, {.batch_size_max = 4});
  const uint64_t before = WorkQueue::Get().graph_pieces();
  const Step free = RunStep(*plan, random.batch());
  const uint64_t pieces = WorkQueue::Get().graph_pieces() - before;
  // The last three pieces of a device's graph report its last range and end the graph. More pieces
  // than those of all devices come after the first range.
  const uint64_t held = 3 * std::max(GetParam(), 1u);
  ASSERT_GT(pieces, 2 * held);
  Releaser releaser;

  WorkQueue::Get().HoldGraphsAfter(pieces - held);
  const Step step = RunStep(*plan, random.batch(), &releaser);

  EXPECT_EQ(releaser.ranges(), 5) << "one for each layer that has parameters";
  EXPECT_EQ(step.gradients, free.gradients);
}

INSTANTIATE_TEST_SUITE_P(Gpus, LeavingRangesTest, testing::Values(0, 1, 2, 3),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace slipstream
