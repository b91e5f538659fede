#include "worker/client/cancel_switch.h"

#include <gtest/gtest.h>

#include <optional>

namespace slipstream {
namespace {

TEST(CancelSwitchTest, TheUpperSwitchThrowsTheLowerOne) {
  CancelSwitch upper;
  CancelSwitch lower(&upper);
  CancelSwitch lowest(&lower);

  upper.Throw();

  EXPECT_TRUE(lower.thrown());
  EXPECT_TRUE(lowest.thrown());
  EXPECT_TRUE(CancelSwitch(&upper).thrown()) << "also one that comes later";
}

TEST(CancelSwitchTest, TheLowerSwitchLeavesTheUpperOneAsItIs) {
  CancelSwitch upper;
  CancelSwitch lower(&upper);

  lower.Throw();

  EXPECT_FALSE(upper.thrown());
}

TEST(CancelSwitchTest, TheUpperSwitchOutlivesTheLowerOne) {
  CancelSwitch upper;
  std::optional<CancelSwitch> lower(&upper);
  lower.reset();

  upper.Throw();

  EXPECT_TRUE(upper.thrown());
}

}  // namespace
}  // namespace slipstream
