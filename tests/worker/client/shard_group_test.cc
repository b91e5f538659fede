#include "worker/client/shard_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {
namespace {

/// A group whose clients call nobody.
class Group {
 public:
  explicit Group(uint32_t shards)
      : group_(
            std::vector<std::string>(shards, "127.0.0.1:1"), MapOf(shards), {},
            [](absl::Duration) { return true; }, cancel_) {}

  ShardGroup* operator->() { return &group_; }
  bool has_ended_calls() const { return cancel_.thrown(); }

 private:
  static ShardMap MapOf(uint32_t shards) {
    TensorLayout layout;
    EXPECT_TRUE(layout.Append("all", {shards}).ok());
    return ShardMap::Cut(layout, shards).value();
  }

  CancelSwitch cancel_;
  ShardGroup group_;
};

TEST(ShardGroupTest, EveryShardIsServedOnceAndAtTheSameTime) {
  Group group(4);
  std::atomic<int> waiting = 0;

  const absl::Status status = group->Run(
      {ShardId{0}, ShardId{1}, ShardId{2}, ShardId{3}}, [&waiting](ShardClient&) -> absl::Status {
        ++waiting;
        while (waiting < 4) std::this_thread::yield();  // Ends only if all four run at once.
        return absl::OkStatus();
      });

  EXPECT_TRUE(status.ok());
}

TEST(ShardGroupTest, OnlyTheShardsAskedForAreServed) {
  Group group(3);
  Mutex mutex;
  std::multiset<uint32_t> served;
  const auto note = [&](ShardClient& shard) {
    MutexLock lock(mutex);
    served.insert(Value(shard.shard()));
    return absl::OkStatus();
  };

  for (int i = 0; i < 100; ++i) ASSERT_TRUE(group->Run({ShardId{0}, ShardId{2}}, note).ok());
  ASSERT_TRUE(group->Run({ShardId{1}}, note).ok());

  EXPECT_EQ(served.count(0), 100u);
  EXPECT_EQ(served.count(1), 1u);
  EXPECT_EQ(served.count(2), 100u);
}

TEST(ShardGroupTest, TheFirstFailureIsReportedAfterAllHaveReturned) {
  Group group(3);
  std::atomic<bool> has_failed = false;

  const absl::Status status =
      group->Run({ShardId{0}, ShardId{1}, ShardId{2}}, [&](ShardClient& shard) -> absl::Status {
        if (Value(shard.shard()) == 1) {
          has_failed = true;
          return absl::AbortedError("first");
        }
        while (!has_failed) std::this_thread::yield();
        return absl::OkStatus();
      });

  EXPECT_EQ(status, absl::AbortedError("first"));
  EXPECT_TRUE(group->Run({ShardId{1}}, [](ShardClient&) { return absl::OkStatus(); }).ok());
}

TEST(ShardGroupTest, AFailureEndsTheCallsOfTheOthersUnlessTheWorkIsOnlyTried) {
  Group group(2);
  const auto fail = [](ShardClient&) { return absl::AbortedError("fails"); };

  EXPECT_EQ(group->Try({ShardId{0}, ShardId{1}}, fail), absl::AbortedError("fails"));
  EXPECT_FALSE(group.has_ended_calls());
  EXPECT_EQ(group->Run({ShardId{1}}, fail), absl::AbortedError("fails"));
  EXPECT_TRUE(group.has_ended_calls());
}

TEST(ShardGroupTest, AFailureCountsMoreThanTheCancellationsItCauses) {
  Group group(2);
  std::atomic<bool> has_returned = false;

  const absl::Status status =
      group->Run({ShardId{0}, ShardId{1}}, [&](ShardClient& shard) -> absl::Status {
        if (Value(shard.shard()) == 1) {
          has_returned = true;
          return absl::CancelledError("stopped");
        }
        while (!has_returned) std::this_thread::yield();
        return absl::FailedPreconditionError("fenced");
      });

  EXPECT_EQ(status, absl::FailedPreconditionError("fenced"));
}

TEST(ShardGroupTest, ALaneDoesOneThingAfterAnotherInTheOrderGiven) {
  std::vector<int> done;  // Only lane 1 writes to it.
  std::atomic<bool> may_go = false;
  {
    Group group(2);
    for (int i = 0; i < 20; ++i) {
      group->Start({ShardId{1}}, [&, i](ShardClient&) {
        while (!may_go) std::this_thread::yield();
        done.push_back(i);
        return absl::OkStatus();
      });
    }
    EXPECT_TRUE(group->Run({ShardId{0}}, [](ShardClient&) { return absl::OkStatus(); }).ok())
        << "the other lane is free";
    may_go = true;
    ASSERT_TRUE(group->Run({ShardId{1}}, [](ShardClient&) { return absl::OkStatus(); }).ok());
  }

  ASSERT_EQ(done.size(), 20u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(ShardGroupTest, RunWaitsItsTurnInTheFirstLane) {
  Group group(1);
  std::atomic<bool> first_is_done = false;
  group->Start({ShardId{0}}, [&](ShardClient&) {
    std::this_thread::yield();
    first_is_done = true;
    return absl::OkStatus();
  });

  ASSERT_TRUE(group
                  ->Run({ShardId{0}},
                        [&](ShardClient&) {
                          EXPECT_TRUE(first_is_done);
                          return absl::OkStatus();
                        })
                  .ok());
}

}  // namespace
}  // namespace slipstream
