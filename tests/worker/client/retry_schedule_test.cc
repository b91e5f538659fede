#include "worker/client/retry_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace slipstream {
namespace {

constexpr RetryOptions kOptions{.first_wait = absl::Milliseconds(100),
                                .wait_max = absl::Milliseconds(800),
                                .give_up_after = absl::Seconds(10)};
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

TEST(RetryScheduleTest, WaitsDoubleUpToTheirMaximumWithJitterBelow) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RetrySchedule schedule(kOptions, seed, kStart);
    for (const int milliseconds : {100, 200, 400, 800, 800, 800}) {
      const absl::Duration wait = schedule.Next(kStart).value();

      ASSERT_LE(wait, absl::Milliseconds(milliseconds));
      ASSERT_GE(wait, absl::Milliseconds(milliseconds) / 2);
    }
  }
}

TEST(RetryScheduleTest, ClientsThatFailTogetherDoNotComeBackTogether) {
  RetrySchedule one(kOptions, 1, kStart);
  RetrySchedule other(kOptions, 2, kStart);

  EXPECT_NE(one.Next(kStart), other.Next(kStart));
}

TEST(RetryScheduleTest, GivesUpOnTimeAndNeverWaitsBeyondIt) {
  RetrySchedule schedule(kOptions, 1, kStart);
  absl::Time now = kStart;
  while (const std::optional<absl::Duration> wait = schedule.Next(now)) {
    now += *wait;
    ASSERT_LE(now, kStart + kOptions.give_up_after);
  }

  EXPECT_EQ(now, kStart + kOptions.give_up_after);
}

TEST(RetryScheduleTest, RepeatsOnlyWhatMaySucceedNextTime) {
  EXPECT_TRUE(IsTransient(absl::UnavailableError("")));
  EXPECT_TRUE(IsTransient(absl::DeadlineExceededError("")));
  EXPECT_FALSE(IsTransient(absl::OkStatus()));
  EXPECT_FALSE(IsTransient(absl::FailedPreconditionError("")));
  EXPECT_FALSE(IsTransient(absl::InvalidArgumentError("")));
  EXPECT_FALSE(IsTransient(absl::AbortedError("")));
}

}  // namespace
}  // namespace slipstream
