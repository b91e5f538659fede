// Tests that results may differ in their bits if a run permits it, and only then. A real GPU may
// not show a difference.

#include <gtest/gtest.h>

#include <vector>

#include "common/model/presets.h"
#include "tests/gpu/gpu.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"

namespace slipstream {
namespace {

class AnyOrderTest : public testing::Test {
 protected:
  void SetUp() override { PS_SKIP_WITHOUT_GPU(); }

  std::vector<float> Gradients(bool deterministic) const {
    const RandomBatch random(8, shapes_.input().elements(), shapes_.outputs(), 1);
    const auto plan = PrepareWithWeights(*gpu_.device, model_,
                                         {.batch_size_max = 8, .deterministic = deterministic});
    return RunStep(*plan, random.batch()).gradients;
  }

  const Gpu gpu_;
  const ModelSpec model_ = *FindPreset("lenet5");
  const NetShapes shapes_ = InferredShapes(model_);
};

TEST_F(AnyOrderTest, PlansAreDeterministicUnlessTheyNeedNotBe) {
  const std::vector<float> expected = Gradients(true);

  EXPECT_EQ(Gradients(true), expected);
  const std::vector<float> one = Gradients(false);
  const std::vector<float> other = Gradients(false);
  EXPECT_NE(one, other) << "what is proposed first is taken";
  ExpectGradientsNear(shapes_.layout, one, expected, 1e-4f);
  ExpectGradientsNear(shapes_.layout, other, expected, 1e-4f);
}

}  // namespace
}  // namespace slipstream
