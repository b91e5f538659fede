#include "worker/training/gradient_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace slipstream {
namespace {

GradientClip ClipTo(double value, double norm) {
  OptimizerSpec optimizer;
  optimizer.clip_value = value;
  optimizer.clip_norm = norm;
  return GradientClip(optimizer);
}

TEST(GradientClipTest, LeavesGradientsAloneUnlessTold) {
  std::vector<float> gradient = {3, -4e10f};
  ClipTo(0, 0).Clip(gradient);
  EXPECT_EQ(gradient, (std::vector<float>{3, -4e10f}));
}

TEST(GradientClipTest, ClipsValuesOnBothSides) {
  std::vector<float> gradient = {3, -4, 0.5f};
  ClipTo(1, 0).Clip(gradient);
  EXPECT_EQ(gradient, (std::vector<float>{1, -1, 0.5f}));
}

TEST(GradientClipTest, ClipsTheNormOfWhatClippedValuesLeave) {
  std::vector<float> gradient = {3, -40};
  ClipTo(4, 2.5).Clip(gradient);
  EXPECT_EQ(gradient, (std::vector<float>{1.5f, -2}));

  EXPECT_EQ(ClipTo(0, 2.5).FactorOf(std::vector<float>{0.3f, 0.4f}), 1);
  EXPECT_EQ(ClipTo(0, 2.5).FactorOf(std::vector<float>(4)), 1);
  EXPECT_GT(ClipTo(0, 1e-30).FactorOf(std::vector<float>{1e14f}), 0) << "0 is no factor";
}

TEST(GradientClipTest, HidesNothingThatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> gradient = {std::nanf(""), infinity, -infinity, 5};
  ClipTo(1, 0).ClipValues(gradient);
  EXPECT_TRUE(std::isnan(gradient[0]));
  EXPECT_EQ(gradient[1], infinity);
  EXPECT_EQ(gradient[2], -infinity);
  EXPECT_EQ(gradient[3], 1);
}

}  // namespace
}  // namespace slipstream
