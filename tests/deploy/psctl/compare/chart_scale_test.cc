#include "deploy/psctl/compare/chart_scale.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/philox.h"

namespace slipstream {
namespace {

std::vector<std::string> LabelsOf(const ChartScale& scale) {
  std::vector<std::string> labels;
  for (const double tick : scale.ticks) labels.push_back(scale.Label(tick));
  return labels;
}

TEST(ChartScaleTest, EndsWithRoundNumbers) {
  using Labels = std::vector<std::string>;

  EXPECT_EQ(LabelsOf(ChartScale::Around(0, 97, 5)), (Labels{"0", "20", "40", "60", "80", "100"}));
  EXPECT_EQ(LabelsOf(ChartScale::Around(91.2, 93.4, 5)),
            (Labels{"91.0", "91.5", "92.0", "92.5", "93.0", "93.5"}));
  EXPECT_EQ(LabelsOf(ChartScale::Around(-0.03, 0.05, 4)),
            (Labels{"-0.04", "-0.02", "0.00", "0.02", "0.04", "0.06"}));
}

TEST(ChartScaleTest, MovesEqualBoundsApart) {
  const ChartScale scale = ChartScale::Around(97.5, 97.5, 5);

  EXPECT_LT(scale.low, scale.high);
  EXPECT_LE(scale.low, 97.5);
  EXPECT_GE(scale.ticks.size(), 2u);
}

TEST(ChartScaleTest, KeepsStepsOfWholeNumbersWhole) {
  EXPECT_EQ(LabelsOf(ChartScale::Around(0, 2, 5, /*step_min=*/1)),
            (std::vector<std::string>{"0", "1", "2"}));
}

TEST(ChartScaleTest, HoldsEveryRangeWithFewTicks) {
  RandomStream random(5, 0);
  for (int i = 0; i < 1000; ++i) {
    const double low = (random.Unit() - 0.5) * 1e4;
    const double high = low + random.Unit() * (i % 2 == 0 ? 1e-3 : 1e5);
    SCOPED_TRACE(testing::Message() << low << " to " << high);

    const ChartScale scale = ChartScale::Around(low, high, 5);

    const double slack = 1e-6 * (high - low);
    ASSERT_LE(scale.low, low + slack);
    ASSERT_GE(scale.high, high - slack);
    ASSERT_GE(scale.ticks.size(), 2u);
    ASSERT_LE(scale.ticks.size(), 8u);
  }
}

TEST(ChartScaleTest, ATickMayHaveALabelOfItsOwn) {
  const ChartScale scale = {.low = 6, .high = 9, .ticks = {7, 8}, .labels = {"128", "256"}};

  EXPECT_EQ(scale.Label(8), "256");
}

}  // namespace
}  // namespace slipstream
