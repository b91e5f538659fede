#include "worker/core/heartbeat_times.h"

#include <gtest/gtest.h>

#include <map>

namespace slipstream {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(500);
const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'123);

TEST(HeartbeatTimesTest, EveryWorkerIsDueOnceInAnInterval) {
  for (uint32_t worker : {0u, 1u, 9u, 10u, 999u, 4'294'967'295u}) {
    const absl::Time first = NextHeartbeat(kNow, kInterval, WorkerId{worker});
    EXPECT_GT(first, kNow);
    EXPECT_LE(first, kNow + kInterval);
    EXPECT_EQ(NextHeartbeat(first, kInterval, WorkerId{worker}), first + kInterval);
    const absl::Time just_before = first - absl::Nanoseconds(1);
    EXPECT_EQ(NextHeartbeat(just_before, kInterval, WorkerId{worker}), first);
  }
}

TEST(HeartbeatTimesTest, ManyWorkersAreDueAtFewMomentsAndEvenlySpreadOverThem) {
  std::map<absl::Time, int> due;
  for (uint32_t worker = 0; worker < 1000; ++worker) {
    ++due[NextHeartbeat(kNow, absl::Seconds(1), WorkerId{worker})];
  }
  ASSERT_EQ(due.size(), 10u);
  for (const auto& [time, workers] : due) EXPECT_EQ(workers, 100);
}

TEST(HeartbeatTimesTest, WorkersWithIntervalsBelowTheGridAreDueTogether) {
  const absl::Time due = NextHeartbeat(kNow, absl::Milliseconds(7), WorkerId{3});
  EXPECT_EQ(due, NextHeartbeat(kNow, absl::Milliseconds(7), WorkerId{4}));
  EXPECT_LE(due, kNow + absl::Milliseconds(7));
}

TEST(HeartbeatTimesTest, ThereAreThreeInALeaseAndAThousandASecond) {
  EXPECT_EQ(HeartbeatInterval(absl::Seconds(30), 4), absl::Milliseconds(500));
  EXPECT_EQ(HeartbeatInterval(absl::Seconds(30), 2000), absl::Seconds(2));
  EXPECT_EQ(HeartbeatInterval(absl::Seconds(3), 2000), absl::Seconds(1));
}

}  // namespace
}  // namespace slipstream
