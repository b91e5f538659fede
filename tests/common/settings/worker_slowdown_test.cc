#include "common/settings/worker_slowdown.h"

#include <gtest/gtest.h>

#include "common/settings/run_spec.h"

namespace slipstream {
namespace {

TEST(WorkerSlowdownTest, AddsTheDelayToAMultipleOfTheTimeComputed) {
  const WorkerSlowdown both = {.delay = absl::Milliseconds(20), .slower = 4};

  EXPECT_EQ(both.ExtraTime(absl::Milliseconds(10)), absl::Milliseconds(50));
  EXPECT_EQ(WorkerSlowdown().ExtraTime(absl::Milliseconds(10)), absl::ZeroDuration());
}

TEST(WorkerSlowdownTest, SaysWhatItDoes) {
  const absl::Duration delay = absl::Milliseconds(20);

  EXPECT_EQ((WorkerSlowdown{.delay = delay, .slower = 1}.ToText()),
            "a mini-batch takes 20.0 ms longer");
  EXPECT_EQ((WorkerSlowdown{.delay = {}, .slower = 2.5}.ToText()),
            "a mini-batch takes 2.5 times as long");
  EXPECT_EQ((WorkerSlowdown{.delay = delay, .slower = 4}.ToText()),
            "a mini-batch takes 4 times as long and 20.0 ms longer");
}

TEST(WorkerSlowdownTest, WorkersBeyondTheListAreNotSlowed) {
  TestingSpec testing;
  testing.workers = {{}, {.delay = {}, .slower = 4}};

  EXPECT_TRUE(testing.SlowdownOf(WorkerId{0}).is_none());
  EXPECT_EQ(testing.SlowdownOf(WorkerId{1}).slower, 4);
  EXPECT_TRUE(testing.SlowdownOf(WorkerId{2}).is_none());
}

}  // namespace
}  // namespace slipstream
