#include "worker/client/shard_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace slipstream {
namespace {

TEST(ShardLanesTest, EveryShardIsServedOnceAndAtTheSameTime) {
  ShardLanes lanes(4);
  std::atomic<int> waiting = 0;

  const absl::Status status = lanes.Run(
      {ShardId{0}, ShardId{1}, ShardId{2}, ShardId{3}}, [&waiting](ShardId) -> absl::Status {
        ++waiting;
        while (waiting < 4) std::this_thread::yield();  // Ends only if all four run at once.
        return absl::OkStatus();
      });

  EXPECT_TRUE(status.ok());
}

TEST(ShardLanesTest, OnlyTheShardsAskedForAreServed) {
  ShardLanes lanes(3);
  Mutex mutex;
  std::multiset<uint32_t> served;
  const auto note = [&](ShardId shard) {
    MutexLock lock(mutex);
    served.insert(Value(shard));
    return absl::OkStatus();
  };

  for (int i = 0; i < 100; ++i) ASSERT_TRUE(lanes.Run({ShardId{0}, ShardId{2}}, note).ok());
  ASSERT_TRUE(lanes.Run({ShardId{1}}, note).ok());

  EXPECT_EQ(served.count(0), 100u);
  EXPECT_EQ(served.count(1), 1u);
  EXPECT_EQ(served.count(2), 100u);
}

TEST(ShardLanesTest, TheFirstFailureIsReportedAfterAllHaveReturned) {
  ShardLanes lanes(3);
  std::atomic<bool> has_failed = false;

  const absl::Status status =
      lanes.Run({ShardId{0}, ShardId{1}, ShardId{2}}, [&](ShardId shard) -> absl::Status {
        if (Value(shard) == 1) {
          has_failed = true;
          return absl::AbortedError("first");
        }
        while (!has_failed) std::this_thread::yield();
        return absl::OkStatus();
      });

  EXPECT_EQ(status, absl::AbortedError("first"));
  EXPECT_TRUE(lanes.Run({ShardId{1}}, [](ShardId) { return absl::OkStatus(); }).ok());
}

TEST(ShardLanesTest, AFailureCountsMoreThanTheCancellationsItCauses) {
  ShardLanes lanes(2);
  std::atomic<bool> has_returned = false;

  const absl::Status status =
      lanes.Run({ShardId{0}, ShardId{1}}, [&](ShardId shard) -> absl::Status {
        if (Value(shard) == 1) {
          has_returned = true;
          return absl::CancelledError("stopped");
        }
        while (!has_returned) std::this_thread::yield();
        return absl::FailedPreconditionError("fenced");
      });

  EXPECT_EQ(status, absl::FailedPreconditionError("fenced"));
}

TEST(ShardLanesTest, ALaneDoesOneThingAfterAnotherInTheOrderGiven) {
  std::vector<int> done;  // Only lane 1 writes to it.
  std::atomic<bool> may_go = false;
  {
    ShardLanes lanes(2);
    for (int i = 0; i < 20; ++i) {
      lanes.Start({ShardId{1}}, [&, i](ShardId) {
        while (!may_go) std::this_thread::yield();
        done.push_back(i);
        return absl::OkStatus();
      });
    }
    EXPECT_TRUE(lanes.Run({ShardId{0}}, [](ShardId) { return absl::OkStatus(); }).ok())
        << "the other lane is free";
    may_go = true;
    ASSERT_TRUE(lanes.Run({ShardId{1}}, [](ShardId) { return absl::OkStatus(); }).ok());
  }

  ASSERT_EQ(done.size(), 20u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(ShardLanesTest, RunWaitsItsTurnInTheFirstLane) {
  ShardLanes lanes(1);
  std::atomic<bool> first_is_done = false;
  lanes.Start({ShardId{0}}, [&](ShardId) {
    std::this_thread::yield();
    first_is_done = true;
    return absl::OkStatus();
  });

  ASSERT_TRUE(lanes
                  .Run({ShardId{0}},
                       [&](ShardId) {
                         EXPECT_TRUE(first_is_done);
                         return absl::OkStatus();
                       })
                  .ok());
}

}  // namespace
}  // namespace slipstream
