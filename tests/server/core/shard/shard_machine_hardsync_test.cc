#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"

// Examples of synchronous rounds, of their work and of their end. That rounds close with one
// gradient or excuse from each member that owes one is checked by shard_property_test.cc.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using Kind = RoundWork::Kind;

ShardMachine::Options Hardsync() { return TestOptions({Policy::kHardsync}); }

View Next(const View& view, std::vector<Member> members) {
  return {.number = ViewNumber{Value(view.number) + 1}, .members = std::move(members)};
}

// Returns a member that is not a founding one, with the incarnation that PushOf and TrainingPullOf
// use.
Member Joiner(uint32_t worker) { return {WorkerId{worker}, Incarnation{worker + 1}, false}; }

class HardsyncTest : public testing::Test {
 protected:
  void Start(uint32_t workers) { driver_.Start(FoundingView(workers)); }
  uint64_t decided() const { return Value(driver_.core().decided()); }

  ShardMachineDriver driver_{Hardsync()};
};

TEST(HardsyncOrderTest, FoldsByWorkerIdWhateverTheOrderOfArrival) {
  std::vector<uint32_t> arrival = {0, 1, 2, 3};
  do {
    ShardMachineDriver driver(Hardsync());
    driver.Start(FoundingView(4));
    for (uint32_t worker : arrival) driver.Push(PushOf(worker, 1, 0), 0.1 * (worker + 1));

    ASSERT_EQ(driver.LastFolded(), "0 1 2 3");
    ASSERT_EQ(driver.core().lag().max(), 0u);
  } while (std::next_permutation(arrival.begin(), arrival.end()));
}

TEST_F(HardsyncTest, AJoinerOfAnOpenRoundIsExcusedFromItAndHasWorkInTheNext) {
  Start(2);
  driver_.Pull(TrainingPullOf(0));
  driver_.OnView(
      Next(FoundingView(2), {FoundingView(2).members[0], FoundingView(2).members[1], Joiner(2)}));

  const PullDecision first = driver_.Pull(TrainingPullOf(2));
  EXPECT_EQ(std::get<Serve>(first).work->kind, Kind::kExcused);

  driver_.Push(PushOf(0, 1, 0));
  driver_.Push(PushOf(1, 1, 0));
  ShardMachine::PushFacts excuse = ExcuseOf(2, 1, 0);
  excuse.header.pull = true;
  const PushDecision decision = driver_.Push(excuse);
  driver_.PublishAll();
  const Serve& release = driver_.released().at(std::get<Park>(*decision.answer).call);
  EXPECT_EQ(release.work, (RoundWork{Kind::kCompute, {4}}));
}

TEST_F(HardsyncTest, AJoinerThatIsFurtherElsewhereIsNotNamedABatchOfTheOpenRound) {
  Start(1);
  driver_.OnView(Next(FoundingView(1), {FoundingView(1).members[0], Joiner(1)}));
  const CallId joiner = std::get<Park>(driver_.Pull(TrainingPullOf(1, 1))).call;
  EXPECT_EQ(std::get<Serve>(driver_.Pull(TrainingPullOf(0))).work,
            (RoundWork{Kind::kCompute, {0}}));

  driver_.Push(PushOf(0, 1, 0));
  driver_.PublishAll();

  EXPECT_EQ(decided(), 1u) << "the round does not wait for it";
  EXPECT_EQ(driver_.released().at(joiner).work, (RoundWork{Kind::kCompute, {2}}));
}

TEST_F(HardsyncTest, AJoinerThatIsFurtherElsewhereGetsLevelWhenNobodyElseIsLeft) {
  Start(1);
  driver_.OnView(Next(FoundingView(1), {}));
  driver_.OnView({.number = ViewNumber{3}, .members = {Joiner(1)}});

  const CallId joiner = std::get<Park>(driver_.Pull(TrainingPullOf(1, 1))).call;
  driver_.PublishAll();

  EXPECT_EQ(driver_.released().at(joiner).work, (RoundWork{Kind::kCompute, {0}}));
}

TEST_F(HardsyncTest, HandsOutTheBatchesOfTheRoundByRank) {
  Start(3);
  for (const uint32_t worker : {2u, 0u, 1u}) {
    const PullDecision decision = driver_.Pull(TrainingPullOf(worker));
    EXPECT_EQ(std::get<Serve>(decision).work, (RoundWork{Kind::kCompute, {worker}}));
  }
}

TEST_F(HardsyncTest, IsNotDrainedWhileARoundHoldsGradients) {
  Start(2);
  driver_.Push(PushOf(0, 1, 0), 1);
  driver_.OnPhase(Phase::kDraining, 0);
  EXPECT_FALSE(driver_.core().is_drained());

  driver_.OnView(Next(FoundingView(2), {}));
  driver_.PublishAll();

  EXPECT_EQ(driver_.weights().back(), -1.0);
  EXPECT_TRUE(driver_.core().is_drained());
}

// Tests of the end of a run of 3 mini-batches with 2 workers.
class HardsyncEndTest : public testing::Test {
 protected:
  static ShardPlan ThreeBatches() {
    ShardPlan plan = TestPlan();
    plan.batches_total = 3;
    return plan;
  }

  HardsyncEndTest() {
    driver_.Start(FoundingView(2));
    driver_.Pull(TrainingPullOf(0));
    driver_.Pull(TrainingPullOf(1));
    driver_.Push(ExchangeOf(0, 1, 0), 1);
    driver_.Push(ExchangeOf(1, 1, 0), 1);
    driver_.PublishAll();
  }

  ShardMachineDriver driver_{Hardsync(), ThreeBatches()};
};

TEST_F(HardsyncEndTest, TheLastRoundExcusesWhoHasNoWorkAndIsWeighedByExamples) {
  EXPECT_EQ(driver_.released().begin()->second.work, (RoundWork{Kind::kCompute, {2}}));
  EXPECT_EQ(driver_.released().rbegin()->second.work->kind, Kind::kExcused);

  ShardMachine::PushFacts last = ExchangeOf(0, 2, 1);
  last.header.examples = 5;
  driver_.Push(ExcuseOf(1, 2, 1));
  driver_.Push(last, 1);

  EXPECT_EQ(driver_.weights(), (std::vector<double>{0, -1, -2}));
}

TEST_F(HardsyncEndTest, IsDrainedOnceTheLastVersionIsPublished) {
  driver_.Push(ExchangeOf(0, 2, 1), 1);
  ShardMachine::PushFacts excuse = ExcuseOf(1, 2, 1);
  excuse.header.pull = true;
  const PushDecision decision = driver_.Push(excuse);
  EXPECT_FALSE(driver_.core().is_drained());

  driver_.PublishAll();

  EXPECT_TRUE(driver_.core().is_drained());
  const Serve& release = driver_.released().at(std::get<Park>(*decision.answer).call);
  EXPECT_EQ(release.work->kind, Kind::kFinished);
}

TEST_F(HardsyncEndTest, DrainingEndsAtTheVersionNamed) {
  driver_.OnPhase(Phase::kDraining, 2);
  EXPECT_FALSE(driver_.core().is_drained());

  driver_.Push(PushOf(0, 2, 1), 1);
  driver_.Push(ExcuseOf(1, 2, 1));
  EXPECT_FALSE(driver_.core().is_drained());
  driver_.PublishAll();

  EXPECT_TRUE(driver_.core().is_drained());
}

TEST_F(HardsyncEndTest, CallsThatWaitForMoreAreAnsweredWhenNothingMoreComes) {
  const PullDecision decision = driver_.Pull(TrainingPullOf(0, 50, 2));
  ASSERT_TRUE(std::holds_alternative<Park>(decision));

  driver_.OnPhase(Phase::kDraining, 1);

  EXPECT_TRUE(driver_.core().is_drained());
  EXPECT_EQ(driver_.released().at(std::get<Park>(decision).call).work->kind, Kind::kFinished);
}

TEST(HardsyncDrainTest, NothingJoinsADrainedShard) {
  ShardPlan plan = TestPlan();
  plan.batches_total = 2;
  ShardMachineDriver driver(Hardsync(), plan);
  driver.Start(FoundingView(2));
  driver.Pull(TrainingPullOf(0));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.Push(PushOf(1, 1, 0), 1);
  driver.PublishAll();
  ASSERT_TRUE(driver.core().is_drained());

  driver.Push(ExchangeOf(0, 2, 1), 1);
  driver.Push(PushOf(1, 2, 1), 1);

  EXPECT_TRUE(driver.core().is_drained());
  EXPECT_EQ(driver.core().decided(), Version{1});
  EXPECT_TRUE(driver.waiting().empty());
}

TEST(HardsyncDrainTest, NothingJoinsBeyondTheDrainVersion) {
  ShardMachine::Options options = Hardsync();
  options.shard = ShardId{1};
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(1));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.OnPhase(Phase::kDraining, 1);
  driver.PublishAll();
  ASSERT_TRUE(driver.core().is_drained());

  driver.Push(PushOf(0, 2, 1), 1);

  EXPECT_EQ(driver.core().decided(), Version{1});
  EXPECT_TRUE(driver.core().is_drained());
}

TEST(HardsyncDrainTest, AShardLeftBehindByDeadWorkersStillDrains) {
  ShardMachineDriver driver(Hardsync());
  driver.Start(FoundingView(1));

  driver.OnView({.number = ViewNumber{2}, .members = {}});
  driver.OnPhase(Phase::kDraining, 1);

  EXPECT_TRUE(driver.core().is_drained());
}

TEST(HardsyncDrainTest, AFailedRunReleasesParkedCalls) {
  ShardMachineDriver driver(Hardsync());
  driver.Start(FoundingView(2));
  driver.Push(ExchangeOf(0, 1, 0), 1);

  driver.OnPhase(Phase::kFailed);

  EXPECT_TRUE(driver.waiting().empty());
}

TEST_F(HardsyncTest, WhenWorkEndsTheOpenRoundIsTheLast) {
  Start(2);
  driver_.Pull(TrainingPullOf(0));
  driver_.Pull(TrainingPullOf(1));

  driver_.OnWorkEnds();
  EXPECT_FALSE(driver_.core().is_drained());
  driver_.Push(ExchangeOf(0, 1, 0), 2);
  driver_.Push(ExchangeOf(1, 1, 0), 4);
  driver_.PublishAll();

  EXPECT_TRUE(driver_.core().is_drained());
  EXPECT_EQ(decided(), 1u);
  EXPECT_EQ(driver_.weights().back(), -3.0);
  for (const auto& [ticket, release] : driver_.released()) {
    ASSERT_TRUE(release.work.has_value());
    EXPECT_EQ(release.work->kind, RoundWork::Kind::kFinished);
  }
  EXPECT_EQ(driver_.released().size(), 2u);
}

TEST_F(HardsyncTest, WhenWorkEndsBetweenRoundsThereIsNoFurtherOne) {
  Start(2);

  driver_.OnWorkEnds();

  EXPECT_TRUE(driver_.core().is_drained());
  const PullDecision pull = driver_.Pull(TrainingPullOf(0));
  EXPECT_EQ(std::get<Serve>(pull).work->kind, RoundWork::Kind::kFinished);
}

}  // namespace
}  // namespace slipstream
