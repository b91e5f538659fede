#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "common/kernels/delay_compensated.h"
#include "common/kernels/gap_aware.h"
#include "tests/common/kernels/cut_payload.h"

namespace slipstream {
namespace {

TEST(DelayCompensatedTest, GivesThePublishedFigure) {
  RandomStream random(0, 17);
  const CutPayload gradient({0.5f}, random);
  const std::vector<float> base = {1.0f};
  const std::vector<float> now = {0.8f};
  std::vector<float> sum(1);

  FoldDelayCompensated(sum, gradient.segments(), base, now, 2.0f, {.first = true});

  EXPECT_FLOAT_EQ(now[0] - 0.1f * sum[0], 0.76f);
}

TEST(DelayCompensatedTest, EqualsThePlainLoopToTheBitWhereverThePayloadIsCut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 18);
    const auto gradient = RandomValues(random.Below(300), random);
    const auto base = RandomValues(gradient.size(), random);
    const auto now = RandomValues(gradient.size(), random);
    const auto before = RandomValues(gradient.size(), random);
    std::vector<float> sum = before;
    std::vector<float> first = before;

    const CutPayload payload(gradient, random);
    FoldDelayCompensated(sum, payload.segments(), base, now, 0.5f, {.weight = 3});
    FoldDelayCompensated(first, payload.segments(), base, now, 0.5f, {.weight = 3, .first = true});

    for (size_t i = 0; i < sum.size(); ++i) {
      const float g = gradient[i];
      const float compensated = g + (0.5f * g) * (g * (now[i] - base[i]));
      ASSERT_EQ(sum[i], before[i] + 3.0f * compensated) << "at " << i;
      ASSERT_EQ(first[i], 3.0f * compensated) << "at " << i;
    }
  }
}

TEST(DelayCompensatedTest, CompensatesTheClippedGradient) {
  RandomStream random(0, 17);
  const CutPayload gradient({1e6f}, random);
  const std::vector<float> base = {0};
  const std::vector<float> now = {0.01f};
  std::vector<float> sum(1);
  std::vector<float> mean_square(1);

  FoldDelayCompensated(sum, gradient.segments(), base, now, 0.04f, {.clip = 1e-6f, .first = true});
  EXPECT_FLOAT_EQ(sum[0], 1 + 0.04f * 0.01f);

  FoldDelayAdapted(sum, gradient.segments(), base, now, mean_square, 2,
                   {.clip = 1e-6f, .first = true});
  EXPECT_FLOAT_EQ(mean_square[0], 0.05f);
}

TEST(DelayCompensatedTest, LeavesAHugeGradientAsItIsWhereNothingHasMoved) {
  RandomStream random(0, 19);
  const CutPayload gradient({3e38f}, random);
  const std::vector<float> weights = {1.0f};
  std::vector<float> sum(1);

  FoldDelayCompensated(sum, gradient.segments(), weights, weights, 0.04f, {.first = true});

  EXPECT_EQ(sum[0], 3e38f);
}

TEST(DelayAdaptedTest, EqualsThePlainLoopToTheBitWhereverThePayloadIsCut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 28);
    const auto gradient = RandomValues(random.Below(300), random);
    const auto base = RandomValues(gradient.size(), random);
    const auto now = RandomValues(gradient.size(), random);
    std::vector<float> mean_square(gradient.size(), 0.5f);
    std::vector<float> sum(gradient.size(), 2.0f);

    const CutPayload payload(gradient, random);
    FoldDelayAdapted(sum, payload.segments(), base, now, mean_square, 2.0f,
                     {.weight = 3, .first = seed % 2 == 0});

    for (size_t i = 0; i < sum.size(); ++i) {
      const float g = gradient[i];
      const float mean = 0.95f * 0.5f + 0.05f * (g * g);
      const float strength = 2.0f / std::sqrt(mean + 1e-7f);
      const float compensated = g + (strength * g) * (g * (now[i] - base[i]));
      ASSERT_EQ(mean_square[i], mean) << "at " << i;
      ASSERT_EQ(sum[i], (seed % 2 == 0 ? 0.0f : 2.0f) + 3.0f * compensated) << "at " << i;
    }
  }
}

TEST(GapAwareTest, AWeightThatHasMovedByOneUsualStepHalvesItsGradient) {
  RandomStream random(0, 29);
  const CutPayload gradient({1, 1, 1, 1}, random);
  const std::vector<float> base = {0, 0, 0, 0};
  const std::vector<float> now = {0, 0.1f, -0.3f, 5};
  const std::vector<float> mean_step = {0.1f, 0.1f, 0.1f, 0};
  std::vector<float> sum(4);

  FoldGapAware(sum, gradient.segments(), base, now, mean_step, {.first = true});

  EXPECT_FLOAT_EQ(sum[0], 1);
  EXPECT_FLOAT_EQ(sum[1], 0.5f);
  EXPECT_FLOAT_EQ(sum[2], 0.25f);
  EXPECT_NEAR(sum[3], 0, 1e-18) << "no usual step leads so far";
}

TEST(GapAwareTest, EqualsThePlainLoopToTheBitWhereverThePayloadIsCut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 30);
    const auto gradient = RandomValues(random.Below(300), random);
    const auto base = RandomValues(gradient.size(), random);
    const auto now = RandomValues(gradient.size(), random);
    std::vector<float> mean_step = RandomValues(gradient.size(), random);
    std::ranges::for_each(mean_step, [](float& step) { step = std::fabs(step); });
    std::vector<float> sum(gradient.size(), 2.0f);

    const CutPayload payload(gradient, random);
    FoldGapAware(sum, payload.segments(), base, now, mean_step, {.weight = 3});

    for (size_t i = 0; i < sum.size(); ++i) {
      const float step = mean_step[i] + 1e-20f;
      const float factor = step / (step + std::fabs(now[i] - base[i]));
      ASSERT_EQ(sum[i], 2.0f + 3.0f * (gradient[i] * factor)) << "at " << i;
    }
  }
}

TEST(GapAwareTest, TheMeanStepIsOfAllStepsAtFirstAndThenOfAboutAHundred) {
  std::vector<float> mean_step(1);
  const std::vector<float> origin = {0};
  for (const auto& [update, step] : {std::pair{1, 2.0f}, {2, -4.0f}, {3, 6.0f}}) {
    NoteStep(origin, std::vector<float>{step}, static_cast<uint64_t>(update), mean_step);
  }
  EXPECT_FLOAT_EQ(mean_step[0], 4);

  NoteStep(origin, std::vector<float>{104}, 1000, mean_step);
  EXPECT_FLOAT_EQ(mean_step[0], 5);
}

}  // namespace
}  // namespace slipstream
