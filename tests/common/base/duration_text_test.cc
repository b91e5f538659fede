#include "common/base/duration_text.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(DurationTextTest, HasAUnitAndThreeDigits) {
  EXPECT_EQ(DurationText(absl::ZeroDuration()), "0 s");
  EXPECT_EQ(DurationText(absl::Seconds(-3)), "0 s");
  EXPECT_EQ(DurationText(absl::Microseconds(57)), "57.0 µs");
  EXPECT_EQ(DurationText(absl::Microseconds(810)), "810 µs");
  EXPECT_EQ(DurationText(absl::Microseconds(17'340)), "17.3 ms");
  EXPECT_EQ(DurationText(absl::Microseconds(999'400)), "999 ms");
  EXPECT_EQ(DurationText(absl::Microseconds(999'700)), "1.00 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(9'996)), "10.0 s");
  EXPECT_EQ(DurationText(absl::Seconds(59)), "59.0 s");
}

TEST(DurationTextTest, HasTwoUnitsFromAMinuteOn) {
  EXPECT_EQ(DurationText(absl::Milliseconds(59'960)), "1m00s");
  EXPECT_EQ(DurationText(absl::Seconds(112)), "1m52s");
  EXPECT_EQ(DurationText(absl::Milliseconds(3'599'600)), "1h00m");
  EXPECT_EQ(DurationText(absl::Seconds(7505)), "2h05m");
  EXPECT_EQ(DurationText(absl::Hours(24)), "1d00h");
  EXPECT_EQ(DurationText(absl::Hours(76)), "3d04h");
  EXPECT_EQ(DurationText(absl::InfiniteDuration()), "for ever");
}

TEST(ThreeDigitsTest, KeepsAllDigitsOfTheWholePart) {
  EXPECT_EQ(ThreeDigits(0), "0");
  EXPECT_EQ(ThreeDigits(0.4217), "0.422");
  EXPECT_EQ(ThreeDigits(5), "5.00");
  EXPECT_EQ(ThreeDigits(-99.96), "-100");
  EXPECT_EQ(ThreeDigits(1234.4), "1234");
}

}  // namespace
}  // namespace slipstream
