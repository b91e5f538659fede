#include "worker/training/nonfinite_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/process/exit_code.h"

namespace slipstream {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(NonfinitePartTest, IsNothingOfAHealthyStep) {
  EXPECT_EQ(NonfinitePart(1.5f, std::vector<float>{1, -2, 0x1.fffffep49f}), std::nullopt);
  EXPECT_EQ(NonfinitePart(0, {}), std::nullopt);
}

TEST(NonfinitePartTest, SaysWhatItIs) {
  EXPECT_EQ(NonfinitePart(std::nanf(""), std::vector<float>{1}), "a loss of nan");
  EXPECT_EQ(NonfinitePart(-kInfinity, std::vector<float>{1}), "a loss of -inf");
  EXPECT_EQ(NonfinitePart(2.5f, std::vector<float>{1, 2, kInfinity, std::nanf("")}),
            "a gradient with inf at parameter 2, and a loss of 2.5");
  EXPECT_EQ(
      NonfinitePart(2.5f, std::vector<float>{1, -0x1p50f}),
      "a gradient with -1125899900000000 (servers take magnitudes below 2^50) at parameter 1, "
      "and a loss of 2.5");
}

TEST(NonfinitePartTest, IsWhatTheCodecOfPushesHasNoRoomFor) {
  const std::vector<float> gradient = {1, -65520};

  EXPECT_EQ(NonfinitePart(2.5f, gradient, Encoding::kBf16), std::nullopt);
  EXPECT_EQ(NonfinitePart(2.5f, std::vector<float>{65519}, Encoding::kFp16), std::nullopt);
  EXPECT_EQ(NonfinitePart(2.5f, gradient, Encoding::kFp16),
            "a gradient with -65520 (too much for wire.push_codec fp16) at parameter 1, and a loss "
            "of 2.5");
  EXPECT_EQ(NonfinitePart(2.5f, std::vector<float>{std::nanf("")}, Encoding::kFp16),
            "a gradient with nan at parameter 0, and a loss of 2.5");
}

TEST(NonfiniteStepsTest, AreTooManyInARowOnly) {
  NonfiniteSteps steps(3);

  for (uint64_t batch = 0; batch < 10; ++batch) {
    EXPECT_TRUE(steps.OnNonfinite(3 * batch, "a loss of nan").ok());
    EXPECT_TRUE(steps.OnNonfinite(3 * batch + 1, "a loss of inf").ok());
    EXPECT_EQ(steps.count().in_a_row, 2u);
    steps.OnHealthy();
    EXPECT_EQ(steps.count().in_a_row, 0u);
  }

  EXPECT_EQ(steps.count().total, 20u);
  EXPECT_EQ(steps.count().batch, 28u);
  EXPECT_EQ(steps.count().what, "a loss of inf");
}

TEST(NonfiniteStepsTest, EndWithWhatToDo) {
  NonfiniteSteps steps(2);
  EXPECT_TRUE(steps.OnNonfinite(6, "a loss of inf").ok());

  const absl::Status status = steps.OnNonfinite(7, "a loss of nan");

  EXPECT_EQ(ExitCodeFor(status), ExitCode::kDiverged);
  EXPECT_EQ(std::string(status.message()),
            "training diverged: 2 mini-batches in a row gave no finite numbers; the last, "
            "mini-batch 7, gave a loss of nan. Lower optimizer.learning_rate, or let it rise "
            "(optimizer.schedule.warmup_epochs); training.nonfinite_max says how many may be left "
            "out");
}

TEST(NonfiniteStepsTest, TheFirstIsTooManyIfOneEndsTheRun) {
  EXPECT_FALSE(NonfiniteSteps(1).OnNonfinite(0, "a loss of nan").ok());
}

}  // namespace
}  // namespace slipstream
