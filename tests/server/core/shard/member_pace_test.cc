#include "server/core/shard/member_pace.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

PullCondition Settled(const MemberPace& pace, PullCondition condition, bool is_free = false) {
  pace.Settle(condition, is_free, /*decided=*/Version{9});
  return condition;
}

TEST(MemberPaceTest, APullWaitsForTheSlowestAndThenForWhatIsDecided) {
  MemberPace pace;
  pace.Note(WorkerClock{4});
  const PullCondition condition = {.version = Version{2}, .slowest = WorkerClock{5}};
  EXPECT_EQ(Settled(pace, condition).slowest, WorkerClock{5});
  EXPECT_EQ(Settled(pace, condition).version, Version{2});

  pace.Note(WorkerClock{5});
  EXPECT_EQ(Settled(pace, condition).slowest, WorkerClock{});
  EXPECT_EQ(Settled(pace, condition).version, Version{9});
}

TEST(MemberPaceTest, APullThatWaitsForNobodyIsLeftAlone) {
  MemberPace pace;
  pace.Note(WorkerClock{4});
  EXPECT_EQ(Settled(pace, {.version = Version{2}}).version, Version{2});
}

TEST(MemberPaceTest, NobodyIsAwaitedWhenNobodyWorksOrTheWorkIsDone) {
  MemberPace pace;
  const PullCondition condition = {.slowest = WorkerClock{5}};
  EXPECT_EQ(Settled(pace, condition).slowest, WorkerClock{});

  pace.Note(WorkerClock{1});
  EXPECT_EQ(Settled(pace, condition, /*is_free=*/true).slowest, WorkerClock{});
}

TEST(MemberPaceTest, AWorkerThatJoinsContinuesAtTheHighestPace) {
  MemberPace pace;
  pace.Note(WorkerClock{4});
  pace.Note(WorkerClock{2});
  EXPECT_EQ(pace.Entered(WorkerClock{1}), WorkerClock{4});
  EXPECT_EQ(pace.Entered(WorkerClock{6}), WorkerClock{6});

  pace.RestAll(/*at_least=*/WorkerClock{7});
  EXPECT_EQ(pace.Entered(WorkerClock{1}), WorkerClock{7});
}

}  // namespace
}  // namespace slipstream
