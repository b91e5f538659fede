#include "common/process/steady_time.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(SteadyTimeTest, NeverGoesBack) {
  absl::Time last = SteadyNow();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = SteadyNow();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace slipstream
