#include "server/core/shard/round_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/base/philox.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

using Kind = RoundWork::Kind;

bool AllHeard(WorkerId) { return true; }

RoundWork Compute(uint64_t batch) { return {.kind = Kind::kCompute, .batches = {batch}}; }

TEST(RoundWorkPlanTest, GivesTheMemberOfRankKTheKthBatchOfTheRound) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({2, 5, 9});

  EXPECT_EQ(plan.For(WorkerId{9}, members), Compute(2));
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(0));
  EXPECT_EQ(plan.For(WorkerId{5}, members), Compute(1));

  plan.NextRound(AllHeard);

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

  plan.NextRound(AllHeard);

  EXPECT_EQ(plan.For(WorkerId{2}, Workers({1, 2, 3})), Compute(3));
}

TEST(RoundWorkPlanTest, KnowsWhatWasDoneInTheLastRound) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1});
  plan.For(WorkerId{0}, members);
  EXPECT_EQ(plan.LastOf(WorkerId{1}), std::nullopt);

  plan.NextRound([](WorkerId worker) { return worker == WorkerId{1}; });

  EXPECT_EQ(plan.LastOf(WorkerId{1}), BatchRange{1});
  EXPECT_EQ(plan.LastOf(WorkerId{0}), std::nullopt);
}

TEST(RoundWorkPlanTest, ExcusesMembersWithoutWorkInTheLastRound) {
  RoundWorkPlan plan(5);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(2));
  plan.NextRound(AllHeard);

  EXPECT_FALSE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members), Compute(3));
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(4));
  EXPECT_EQ(plan.For(WorkerId{2}, members).kind, Kind::kExcused);
}

TEST(RoundWorkPlanTest, IsFinishedOnceEveryBatchBelongsToAClosedRound) {
  RoundWorkPlan plan(4);
  const std::vector<WorkerId> members = Workers({0, 1});
  plan.For(WorkerId{0}, members);
  plan.NextRound(AllHeard);
  plan.For(WorkerId{0}, members);
  EXPECT_FALSE(plan.finished());

  plan.NextRound(AllHeard);

  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members).kind, Kind::kFinished);
  EXPECT_EQ(plan.For(WorkerId{1}, members).kind, Kind::kFinished);
}

TEST(RoundWorkPlanTest, NamesAgainWhatWasLateFirstToThoseWhoWereHeard) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  plan.For(WorkerId{0}, members);

  plan.NextRound([](WorkerId worker) { return worker != WorkerId{0}; });

  EXPECT_EQ(plan.batches_done(), 2u);
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(0));
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(3));
  EXPECT_EQ(plan.For(WorkerId{0}, members), Compute(4));
}

TEST(RoundWorkPlanTest, IsNotFinishedWhileABatchIsToBeNamedAgain) {
  RoundWorkPlan plan(2);
  plan.For(WorkerId{0}, Workers({0, 1}));
  plan.NextRound([](WorkerId worker) { return worker == WorkerId{0}; });
  EXPECT_FALSE(plan.finished());

  EXPECT_EQ(plan.For(WorkerId{0}, Workers({0})), Compute(1));
  plan.NextRound(AllHeard);

  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(plan.batches_done(), 2u);
}

// Whatever the members do, each mini-batch is done in one round, by one member. If no member is
// late, mini-batches are done in order.
TEST(RoundWorkPlanPropertyTest, HasEveryBatchDoneExactlyOnce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 3);
    const uint64_t total = 1 + random.Below(60);
    const bool some_are_late = random.Below(2) == 0;
    RoundWorkPlan plan(total);
    std::vector<uint64_t> done;

    while (!plan.finished()) {
      std::vector<WorkerId> members;
      for (uint32_t id = 0; id < 8; ++id) {
        if (random.Below(2) == 0) members.push_back(WorkerId{id});
      }
      if (members.empty()) members.push_back(WorkerId{3});
      std::set<WorkerId> late;
      std::vector<uint64_t> named;
      for (const WorkerId worker : members) {
        if (some_are_late && random.Below(3) == 0) late.insert(worker);
        const RoundWork work = plan.For(worker, members);
        if (work.kind != Kind::kCompute) continue;
        named.push_back(work.batches.first);
        if (!late.contains(worker)) done.push_back(work.batches.first);
      }
      ASSERT_FALSE(named.empty());
      plan.NextRound([&late](WorkerId worker) { return !late.contains(worker); });
      ASSERT_EQ(plan.batches_done(), done.size());
    }
    if (some_are_late) std::ranges::sort(done);
    ASSERT_EQ(done.size(), total);
    for (uint64_t batch = 0; batch < total; ++batch) ASSERT_EQ(done[batch], batch);
  }
}

TEST(RoundWorkPlanTest, ClosedWithinARoundItEndsWithThatRound) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  plan.NextRound(AllHeard);
  ASSERT_EQ(plan.For(WorkerId{0}, members), Compute(0));

  plan.Close();

  EXPECT_FALSE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(2));
  plan.NextRound(AllHeard);
  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members).kind, Kind::kFinished);
}

TEST(RoundWorkPlanTest, ClosedBetweenRoundsItIsFinished) {
  RoundWorkPlan plan(100);
  ASSERT_EQ(plan.For(WorkerId{0}, Workers({0})), Compute(0));
  plan.NextRound(AllHeard);

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

TEST(RoundWorkPlanTest, NamesEachMemberTheBatchesOfOnePush) {
  RoundWorkPlan plan(10, 4);
  const std::vector<WorkerId> members = Workers({1, 3});
  EXPECT_EQ(plan.For(WorkerId{1}, members).batches, (BatchRange{0, 4}));
  EXPECT_EQ(plan.For(WorkerId{3}, members).batches, (BatchRange{4, 4}));

  plan.NextRound([](WorkerId worker) { return worker == WorkerId{3}; });

  EXPECT_EQ(plan.batches_done(), 4u);
  EXPECT_EQ(plan.For(WorkerId{3}, members).batches, (BatchRange{0, 4})) << "named again";
  EXPECT_EQ(plan.For(WorkerId{1}, members).batches, (BatchRange{8, 2})) << "all that is left";
  plan.NextRound(AllHeard);
  EXPECT_EQ(plan.batches_done(), 10u);
  EXPECT_TRUE(plan.finished());
}

}  // namespace

}  // namespace slipstream
