#include "server/core/round_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "common/base/philox.h"

namespace slipstream {
namespace {

using Kind = RoundWork::Kind;

std::vector<WorkerId> Workers(const std::vector<uint32_t>& ids) {
  std::vector<WorkerId> workers;
  for (uint32_t id : ids) workers.push_back(WorkerId{id});
  return workers;
}

RoundWork Compute(uint64_t batch) { return {.kind = Kind::kCompute, .batch = batch}; }

TEST(RoundWorkPlanTest, GivesTheMemberOfRankKTheKthBatchOfTheRound) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({2, 5, 9});

  EXPECT_EQ(plan.For(WorkerId{9}, members), Compute(2));
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(0));
  EXPECT_EQ(plan.For(WorkerId{5}, members), Compute(1));

  plan.NextRound();

  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(3));
  EXPECT_EQ(plan.For(WorkerId{9}, members), Compute(5));
}

TEST(RoundWorkPlanTest, AnswersTheSameTwice) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1});

  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(1));
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(1));
}

TEST(RoundWorkPlanTest, ExcusesWhoJoinsAfterTheMembersAreFixed) {
  RoundWorkPlan plan(100);
  EXPECT_EQ(plan.For(WorkerId{1}, Workers({1, 3})), Compute(0));

  EXPECT_EQ(plan.For(WorkerId{2}, Workers({1, 2, 3})).kind, Kind::kExcused);
  EXPECT_EQ(plan.For(WorkerId{3}, Workers({1, 2, 3})), Compute(1));

  plan.NextRound();

  EXPECT_EQ(plan.For(WorkerId{2}, Workers({1, 2, 3})), Compute(3));
}

TEST(RoundWorkPlanTest, ExcusesMembersWithoutWorkInTheLastRound) {
  RoundWorkPlan plan(5);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(2));
  plan.NextRound();

  EXPECT_FALSE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members), Compute(3));
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(4));
  EXPECT_EQ(plan.For(WorkerId{2}, members).kind, Kind::kExcused);
}

TEST(RoundWorkPlanTest, IsFinishedOnceEveryBatchBelongsToAClosedRound) {
  RoundWorkPlan plan(4);
  const std::vector<WorkerId> members = Workers({0, 1});
  plan.For(WorkerId{0}, members);
  plan.NextRound();
  plan.For(WorkerId{0}, members);
  EXPECT_FALSE(plan.finished());

  plan.NextRound();

  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members).kind, Kind::kFinished);
  EXPECT_EQ(plan.For(WorkerId{1}, members).kind, Kind::kFinished);
}

// Whatever the members do, each mini-batch is handed out for one round, to one member, in order.
TEST(RoundWorkPlanPropertyTest, HandsOutEveryBatchExactlyOnceInOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 3);
    const uint64_t total = 1 + random.Below(60);
    RoundWorkPlan plan(total);
    uint64_t next_batch = 0;

    while (!plan.finished()) {
      std::vector<WorkerId> members;
      for (uint32_t id = 0; id < 8; ++id) {
        if (random.Below(2) == 0) members.push_back(WorkerId{id});
      }
      if (members.empty()) members.push_back(WorkerId{3});
      std::vector<WorkerId> asking = members;
      for (size_t i = asking.size(); i > 1; --i) {
        std::swap(asking[i - 1], asking[random.Below(static_cast<uint32_t>(i))]);
      }
      for (WorkerId worker : asking) {
        const auto rank = std::find(members.begin(), members.end(), worker) - members.begin();
        const uint64_t batch = next_batch + static_cast<uint64_t>(rank);
        const RoundWork work = plan.For(worker, members);
        if (batch < total) {
          ASSERT_EQ(work, Compute(batch));
        } else {
          ASSERT_EQ(work.kind, Kind::kExcused);
        }
      }
      next_batch += members.size();
      plan.NextRound();
    }
    ASSERT_GE(next_batch, total);
  }
}

TEST(RoundWorkPlanTest, ClosedWithinARoundItEndsWithThatRound) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  plan.NextRound();
  ASSERT_EQ(plan.For(WorkerId{0}, members), Compute(0));

  plan.Close();

  EXPECT_FALSE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(2));
  plan.NextRound();
  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members).kind, Kind::kFinished);
}

TEST(RoundWorkPlanTest, ClosedBetweenRoundsItIsFinished) {
  RoundWorkPlan plan(100);
  ASSERT_EQ(plan.For(WorkerId{0}, Workers({0})), Compute(0));
  plan.NextRound();

  plan.Close();

  EXPECT_TRUE(plan.finished());
}

TEST(RoundWorkPlanTest, ClosingDoesNotLengthenTheLastRound) {
  RoundWorkPlan plan(2);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  ASSERT_EQ(plan.For(WorkerId{2}, members).kind, Kind::kExcused);

  plan.Close();

  EXPECT_EQ(plan.For(WorkerId{2}, members).kind, Kind::kExcused);
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(1));
}

}  // namespace
}  // namespace slipstream
