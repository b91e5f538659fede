// Tests a plan whose GPU hangs without an error. Afterwards this process cannot use the GPU any
// more.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "common/model/presets.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/simulated/work_queue.h"
#include "tests/support/example_values.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"
#include "worker/compute/cuda/device_context.h"

namespace slipstream {
namespace {

TEST(HangingDeviceTest, TheStepEndsAndSoDoesThePlan) {
  const Gpu gpu;
  const ModelSpec model = *FindPreset("mlp");
  const NetShapes shapes = InferredShapes(model);
  const RandomBatch random(4, shapes.input().elements(), shapes.outputs(), 1);
  auto training = PrepareWithWeights(*gpu.device, model, {.batch_size_max = 4});
  auto evaluating = PrepareWithWeights(*gpu.device, model, {.batch_size_max = 4, .trains = false});
  cuda::DeviceContext::wait_max = absl::Milliseconds(50);
  simulated::WorkQueue::Get().HoldGraphsAfter(5);

  ASSERT_TRUE(training->StartStep(random.batch(), nullptr).ok());
  const absl::Status ended = training->FinishStep().status();

  EXPECT_EQ(ended.code(), absl::StatusCode::kAborted) << ended;
  EXPECT_NE(ended.ToString().find("has not done what it was given for 50.0 ms"), std::string::npos);
  EXPECT_TRUE(cuda::DeviceContext::HasHung());
  const std::vector<float> examples(8 * shapes.input().elements());
  const std::vector<uint32_t> labels(8);
  EXPECT_FALSE(training->KeepExamples(TableOf(examples, labels)));
  // The destructors would wait for ever if they freed memory that the device still uses.
  training.reset();
  evaluating.reset();
}

}  // namespace
}  // namespace slipstream
