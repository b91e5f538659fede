#include "worker/client/shard_lanes.h"

#include <gtest/gtest.h>

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
        while (waiting < 4) std::this_thread::yield();  // Ends only if all are under way.
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

}  // namespace
}  // namespace slipstream
