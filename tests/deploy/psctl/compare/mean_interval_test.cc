#include "deploy/psctl/compare/mean_interval.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipstream {
namespace {

TEST(MeanIntervalTest, HasTheQuantilesOfStudentsDistribution) {
  EXPECT_NEAR(StudentQuantile95(1), 12.7062, 1e-4);
  EXPECT_NEAR(StudentQuantile95(2), 4.3027, 1e-4);
  EXPECT_NEAR(StudentQuantile95(30), 2.0423, 1e-4);
  EXPECT_NEAR(StudentQuantile95(31), 2.0395, 1e-4);
  EXPECT_NEAR(StudentQuantile95(40), 2.0211, 1e-4);
  EXPECT_NEAR(StudentQuantile95(120), 1.9799, 1e-4);
  EXPECT_NEAR(StudentQuantile95(1'000'000), 1.95997, 1e-4);
}

TEST(MeanIntervalTest, IsThatOfATextbook) {
  // The deviation is 1, so the half width is 4.3027 / √3.
  const MeanInterval interval = MeanOf(std::vector<double>{9, 10, 11});

  EXPECT_DOUBLE_EQ(interval.mean, 10);
  ASSERT_TRUE(interval.half_width.has_value());
  EXPECT_NEAR(*interval.half_width, 2.4841, 1e-4);
  EXPECT_EQ(interval.count, 3u);
}

TEST(MeanIntervalTest, SaysNothingOfTheSpreadOfOneValue) {
  const MeanInterval interval = MeanOf(std::vector<double>{7});

  EXPECT_DOUBLE_EQ(interval.mean, 7);
  EXPECT_FALSE(interval.half_width.has_value());
}

}  // namespace
}  // namespace slipstream
