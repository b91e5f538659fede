#include "worker/training/interruption.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(InterruptionTest, TheFirstFailureCountsAndNotWhatItCancelled) {
  Interruption interruption;
  interruption.Fail(absl::CancelledError("stopped"));
  interruption.Fail(absl::AbortedError("the reason"));
  interruption.Fail(absl::InternalError("later"));

  EXPECT_EQ(interruption.failure(), absl::AbortedError("the reason"));
  EXPECT_TRUE(interruption.cancel_switch().thrown());
}

TEST(InterruptionTest, AStopIsNoFailure) {
  Interruption interruption;
  interruption.Stop();
  interruption.Fail(absl::CancelledError("stopped"));

  EXPECT_TRUE(interruption.interrupted());
  EXPECT_TRUE(interruption.failure().ok());
}

TEST(InterruptionTest, SleepsEndEarly) {
  Interruption interruption;
  EXPECT_TRUE(interruption.Sleep(absl::ZeroDuration()));

  interruption.Stop();

  EXPECT_FALSE(interruption.Sleep(absl::Hours(1)));
}

}  // namespace
}  // namespace slipstream
