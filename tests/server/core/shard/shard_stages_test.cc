#include <gtest/gtest.h>

#include <optional>
#include <variant>
#include <vector>

#include "tests/support/shard_machine_driver.h"

// Tests of a shard whose policy changes during the run.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using Kind = RoundWork::Kind;

/// One epoch of two mini-batches under `first`, and the rest under `second`, at half the rate.
ShardMachine::Options TwoPolicies(const ConsistencySpec& first, const ConsistencySpec& second) {
  ShardMachine::Options options = TestOptions(first);
  options.stages.front().until_epoch = 1;
  options.stages.push_back({.consistency = second, .learning_rate = 0.5});
  return options;
}

ShardPlan Plan() {
  ShardPlan plan = TestPlan();
  plan.batches_total = 100;
  plan.batches_per_epoch = 2;
  return plan;
}

RoundWork WorkOf(const PullDecision& decision) { return *std::get<Serve>(decision).work; }

class ShardStagesTest : public testing::Test {
 protected:
  void SetUp() override { driver_.Start(FoundingView(2)); }

  /// Two rounds of hardsync of one mini-batch each; ends the stage.
  void EndFirstStage() {
    driver_.Pull(TrainingPullOf(0));
    driver_.Pull(TrainingPullOf(1));
    driver_.Push(PushOf(0, 1, 0), 1);
    driver_.Push(PushOf(1, 1, 0), 1);
    driver_.PublishAll();
    ASSERT_EQ(driver_.core().decided(), Version{1});
    driver_.OnPhase(Phase::kDraining, 1);
    ASSERT_TRUE(driver_.core().is_drained());
  }

  ShardMachineDriver driver_{TwoPolicies({Policy::kHardsync}, {Policy::kAsync}), Plan()};
};

TEST_F(ShardStagesTest, NamesTheMiniBatchesOfItsStageAlone) {
  EXPECT_EQ(WorkOf(driver_.Pull(TrainingPullOf(0))).batches.first, 0u);
  EXPECT_EQ(WorkOf(driver_.Pull(TrainingPullOf(1))).batches.first, 1u);
  driver_.Push(PushOf(0, 1, 0), 1);
  driver_.Push(PushOf(1, 1, 0), 1);
  driver_.PublishAll();

  EXPECT_EQ(WorkOf(driver_.Pull(TrainingPullOf(0, 0, 2))).kind, Kind::kFinished);
  EXPECT_EQ(driver_.core().batches_of_rounds(), 2u);
}

TEST_F(ShardStagesTest, TakesGradientsByThePolicyAndTheRateOfTheStage) {
  EndFirstStage();
  const double before = driver_.weights().back();

  driver_.OnStage(1);

  const PullDecision pulled = driver_.Pull(TrainingPullOf(0, 0, 2));
  EXPECT_FALSE(std::get<Serve>(pulled).work.has_value());
  EXPECT_EQ(driver_.Push(PushOf(0, 2, 1), 1).reply.outcome, PushOutcome::kApplied);
  EXPECT_EQ(driver_.core().decided(), Version{2});
  EXPECT_NEAR(driver_.weights().back(), before - 0.5, 1e-6);
}

TEST_F(ShardStagesTest, AGradientOfAnEarlierStageIsLate) {
  EndFirstStage();
  driver_.OnStage(1);

  const PushReply late = driver_.Push(PushOf(0, 2, 0), 1).reply;
  EXPECT_EQ(late.outcome, PushOutcome::kDroppedLate);
  EXPECT_EQ(late.message, "its policy's epochs ended without it");
  EXPECT_EQ(driver_.Push(ExcuseOf(1, 2, 0)).reply.outcome, PushOutcome::kBuffered);
  EXPECT_EQ(driver_.core().decided(), Version{1});
  EXPECT_EQ(driver_.Push(PushOf(0, 3, 1), 1).reply.outcome, PushOutcome::kApplied);
}

TEST(ShardStagesOfRoundsTest, BothMembersOweTheFirstRoundOfTheNextStage) {
  ShardMachineDriver driver(TwoPolicies({Policy::kHardsync}, {Policy::kHardsync}), Plan());
  driver.Start(FoundingView(2));
  driver.Pull(TrainingPullOf(0));
  driver.Pull(TrainingPullOf(1));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.Push(PushOf(1, 1, 0), 1);
  driver.PublishAll();
  driver.OnPhase(Phase::kDraining, 1);

  driver.OnStage(1);

  EXPECT_EQ(driver.LackedMembers().size(), 2u);
  EXPECT_EQ(WorkOf(driver.Pull(TrainingPullOf(0, 0, 2))).batches.first, 2u);
  EXPECT_EQ(WorkOf(driver.Pull(TrainingPullOf(1, 0, 2))).batches.first, 3u);
}

TEST(ShardStagesOfPaceTest, NobodyIsAwaitedWhoHasNotBegunWorkInTheStage) {
  ShardMachineDriver driver(TwoPolicies({Policy::kAsync}, {Policy::kSsp}), Plan());
  driver.Start(FoundingView(2));
  driver.Pull(TrainingPullOf(0));
  driver.Pull(TrainingPullOf(1));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.PublishAll();
  driver.OnPhase(Phase::kDraining);

  driver.OnStage(1);

  PullRequest ahead = TrainingPullOf(0, 0, 2);
  ahead.clock = WorkerClock{50};
  EXPECT_TRUE(std::holds_alternative<Serve>(driver.Pull(ahead)));
}

/// Nobody waits until the slow worker has made all the pushes of the stage before.
TEST(ShardStagesOfPaceTest, AllContinueAtOneClock) {
  ShardMachineDriver driver(TwoPolicies({Policy::kAsync}, {Policy::kSsp}), Plan());
  driver.Start(FoundingView(2));
  ShardMachine::PushFacts fast = PushOf(0, 1, 0);
  fast.header.clock = WorkerClock{90};
  driver.Push(fast, 1);
  driver.PublishAll();
  driver.OnPhase(Phase::kDraining);

  driver.OnStage(1);

  PullRequest slow = TrainingPullOf(1);
  slow.clock = WorkerClock{9};
  EXPECT_TRUE(std::holds_alternative<Serve>(driver.Pull(slow)));
  EXPECT_EQ(driver.core().members().At(WorkerId{1}).clock, WorkerClock{90});
  PullRequest ahead = TrainingPullOf(0, 0, 2);
  ahead.clock = WorkerClock{91};
  EXPECT_TRUE(std::holds_alternative<Serve>(driver.Pull(ahead)));
}

TEST(ShardStagesOfPaceTest, AStageThatDoesNotExistChangesNothing) {
  ShardMachineDriver driver(TwoPolicies({Policy::kAsync}, {Policy::kSsp}), Plan());
  driver.Start(FoundingView(2));
  driver.OnStage(2);
  EXPECT_EQ(driver.core().phase(), Phase::kTraining);
  EXPECT_EQ(driver.Push(PushOf(0, 1, 0), 1).reply.outcome, PushOutcome::kApplied);
}

/// A shard whose run has one policy and is changed while it trains.
class ShardChangeTest : public testing::Test {
 protected:
  void Start(const ConsistencySpec& first) {
    driver_.emplace(TestOptions(first), Plan());
    driver_->Start(FoundingView(2));
    stages_ = TestOptions(first).stages;
  }

  void Change(const ConsistencySpec& policy, double rate = 1) {
    stages_.push_back({.consistency = policy, .learning_rate = rate, .begins_at_once = true});
    driver_->OnStages(stages_);
    driver_->OnStage(static_cast<uint32_t>(stages_.size() - 1));
    driver_->core().CheckInvariants();
  }

  /// Under ssp without slack, worker 0 is a push ahead of worker 1.
  void LetOneWaitForTheOther() {
    driver_->Pull(TrainingPullOf(0));
    driver_->Pull(TrainingPullOf(1));
    ShardMachine::PushFacts push = PushOf(0, 1, 0);
    push.header.clock = WorkerClock{1};
    push.header.pull = true;
    driver_->Push(push, 1);
    driver_->PublishAll();
    ASSERT_EQ(driver_->waiting().size(), 1u);
  }

  std::optional<ShardMachineDriver> driver_;
  std::vector<RunStage> stages_;
};

ConsistencySpec SoftsyncOf(double c) {
  ConsistencySpec softsync = {.policy = Policy::kSoftsync};
  softsync.parameters["c"] = c;
  return softsync;
}

ConsistencySpec SspOf(double slack) {
  ConsistencySpec ssp = {.policy = Policy::kSsp};
  ssp.parameters["slack"] = slack;
  return ssp;
}

TEST_F(ShardChangeTest, AGradientOfWeightsFromBeforeCountsByTheNewPolicy) {
  Start({Policy::kAsync});
  driver_->Push(PushOf(0, 1, 0), 1);
  driver_->PublishAll();

  Change(SoftsyncOf(2));

  EXPECT_EQ(driver_->Push(PushOf(1, 1, 0), 1).reply.outcome, PushOutcome::kBuffered);
  EXPECT_EQ(driver_->Push(PushOf(0, 2, 1), 1).reply.outcome, PushOutcome::kApplied);
  EXPECT_EQ(driver_->core().decided(), Version{2});
  EXPECT_EQ(driver_->core().phase(), Phase::kTraining);
}

TEST_F(ShardChangeTest, TheOpenRoundKeepsItsGradientsAndClosesIfTheNewPolicyWantsNoMore) {
  Start(SoftsyncOf(4));
  driver_->Push(PushOf(0, 1, 0), 1);
  driver_->Push(PushOf(1, 1, 0), 3);
  ASSERT_EQ(driver_->core().decided(), Version{0});

  Change(SoftsyncOf(3));
  EXPECT_EQ(driver_->core().decided(), Version{0});
  EXPECT_EQ(driver_->core().round().contributions(), 2u);

  Change({Policy::kAsync});
  EXPECT_EQ(driver_->core().decided(), Version{1});
  EXPECT_EQ(driver_->updates().back().folded.size(), 2u);
  EXPECT_NEAR(driver_->weights().back(), -2, 1e-6);
}

/// Orders count as a whole: the round does not close by the new policy and the old members.
TEST_F(ShardChangeTest, ARoundClosesByThePolicyAndTheMembersOfTheSameOrders) {
  Start(SoftsyncOf(3));
  driver_->Push(PushOf(0, 1, 0), 1);
  driver_->Push(PushOf(1, 1, 0), 1);
  stages_.push_back({.consistency = {Policy::kSoftsync}, .begins_at_once = true});
  View view = FoundingView(3);
  view.number = ViewNumber{2};
  ServerOrders orders = {
      .number = 2, .stages = stages_, .stage = 1, .phase = Phase::kTraining, .view = view};

  const ShardOutput output = driver_->core().OnOrders(orders);

  EXPECT_FALSE(output.update.has_value());
  EXPECT_EQ(driver_->core().round_size(), 3u);
}

TEST_F(ShardChangeTest, TheNextVersionIsMadeAtTheNewRate) {
  Start({Policy::kAsync});
  driver_->Push(PushOf(0, 1, 0), 1);
  driver_->PublishAll();
  Change({Policy::kAsync}, 0.25);

  driver_->Push(PushOf(0, 2, 1), 1);

  EXPECT_NEAR(driver_->weights().back(), -1.25, 1e-6);
  EXPECT_EQ(driver_->core().stage(), 1u);
}

TEST_F(ShardChangeTest, WhoWaitsForAClockIsAnsweredWhenClocksCountNoMore) {
  Start(SspOf(0));
  LetOneWaitForTheOther();

  Change({Policy::kAsync});

  EXPECT_TRUE(driver_->waiting().empty());
  EXPECT_EQ(driver_->released().size(), 1u);
}

TEST_F(ShardChangeTest, ANewRateLetsNobodyRunAhead) {
  Start(SspOf(0));
  LetOneWaitForTheOther();

  Change(SspOf(0), 0.5);

  EXPECT_EQ(driver_->waiting().size(), 1u);
}

TEST_F(ShardChangeTest, NobodyIsAwaitedWhoHasNotBeenHeardOfSinceTheChange) {
  Start({Policy::kAsync});
  driver_->Pull(TrainingPullOf(0));
  driver_->Pull(TrainingPullOf(1));

  Change(SspOf(0));

  PullRequest ahead = TrainingPullOf(0);
  ahead.clock = WorkerClock{50};
  EXPECT_TRUE(std::holds_alternative<Serve>(driver_->Pull(ahead)));
  EXPECT_EQ(driver_->Push(ExcuseOf(1, 1, 0)).reply.outcome, PushOutcome::kBuffered);
}

TEST_F(ShardChangeTest, AShardThatMissedAChangeTakesAllOfThemAtOnce) {
  Start({Policy::kAsync});
  stages_.push_back({.consistency = SspOf(1), .begins_at_once = true});

  Change(SoftsyncOf(2), 0.5);

  EXPECT_EQ(driver_->core().stage(), 2u);
  EXPECT_EQ(driver_->core().round_size(), 2u);
  EXPECT_EQ(driver_->core().current_learning_rate(), 0.5);
}

TEST_F(ShardChangeTest, AStateThatIsRestoredHasTheChanges) {
  Start({Policy::kAsync});
  Change(SoftsyncOf(2), 0.5);
  ShardMachine other(TestOptions({Policy::kAsync}));

  other.Restore(driver_->core().state());

  EXPECT_EQ(other.round_size(), 2u);
  EXPECT_EQ(other.current_learning_rate(), 0.5);
}

TEST_F(ShardChangeTest, RoundsEndWithTheEpochThatTheChangeNames) {
  Start({Policy::kHardsync});
  driver_->Pull(TrainingPullOf(0));
  driver_->Pull(TrainingPullOf(1));

  stages_.front().until_epoch = 1;
  stages_.push_back({.consistency = {Policy::kAsync}});
  driver_->OnStages(stages_);

  driver_->Push(PushOf(0, 1, 0), 1);
  driver_->Push(PushOf(1, 1, 0), 1);
  driver_->PublishAll();
  EXPECT_EQ(WorkOf(driver_->Pull(TrainingPullOf(0, 0, 2))).kind, Kind::kFinished);
  EXPECT_TRUE(driver_->core().is_drained());
}

TEST_F(ShardChangeTest, RoundsThatHaveBegunAnEpochEndWithThatOne) {
  Start({Policy::kHardsync});
  for (uint64_t round = 0; round < 2; ++round) {
    for (uint32_t worker = 0; worker < 2; ++worker) {
      driver_->Pull(TrainingPullOf(worker, 0, round + 1));
    }
    if (round == 1) break;
    driver_->Push(PushOf(0, 1, 0), 1);
    driver_->Push(PushOf(1, 1, 0), 1);
    driver_->PublishAll();
  }

  stages_.front().until_epoch = 1;
  stages_.push_back({.consistency = {Policy::kAsync}});
  driver_->OnStages(stages_);

  EXPECT_FALSE(driver_->core().is_drained());
  driver_->Push(PushOf(0, 2, 1), 1);
  driver_->Push(PushOf(1, 2, 1), 1);
  driver_->PublishAll();
  EXPECT_TRUE(driver_->core().is_drained());
  EXPECT_EQ(driver_->core().batches_of_rounds(), 4u);
}

}  // namespace
}  // namespace slipstream
