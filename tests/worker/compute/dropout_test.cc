#include "worker/compute/cpu/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace slipstream {
namespace {

std::vector<float> Dropped(const DropoutKey& key, float rate, size_t size) {
  std::vector<float> values(size, 1.0f);
  Dropout(key, rate, values, values);
  return values;
}

TEST(DropoutTest, DropsTheRateAndScalesTheRest) {
  constexpr size_t kSize = 100'003;
  for (const float rate : {0.1f, 0.5f, 0.9f}) {
    SCOPED_TRACE(rate);

    const std::vector<float> values = Dropped({1, 2, 3}, rate, kSize);

    size_t dropped = 0;
    for (const float value : values) {
      if (value == 0) {
        ++dropped;
      } else {
        ASSERT_EQ(value, 1.0f / (1.0f - rate));
      }
    }
    // Allow five standard deviations of a binomial count.
    const double deviation = std::sqrt(kSize * double{rate} * (1 - double{rate}));
    EXPECT_NEAR(static_cast<double>(dropped), kSize * double{rate}, 5 * deviation);
  }
}

TEST(DropoutTest, KeepsEverythingAtRateZero) {
  EXPECT_EQ(Dropped({1, 2, 3}, 0, 101), std::vector<float>(101, 1.0f));
}

TEST(DropoutTest, DependsOnSeedBatchAndLayerAlone) {
  const std::vector<float> values = Dropped({1, 2, 3}, 0.5f, 1000);

  EXPECT_EQ(Dropped({1, 2, 3}, 0.5f, 1000), values);
  EXPECT_NE(Dropped({2, 2, 3}, 0.5f, 1000), values);
  EXPECT_NE(Dropped({1, 3, 3}, 0.5f, 1000), values);
  EXPECT_NE(Dropped({1, 2, 4}, 0.5f, 1000), values);
}

TEST(DropoutTest, TreatsAnElementByItsPositionNotByTheSizeOfTheBatch) {
  const std::vector<float> many = Dropped({1, 2, 3}, 0.5f, 1003);
  const std::vector<float> few = Dropped({1, 2, 3}, 0.5f, 402);

  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

}  // namespace
}  // namespace slipstream
