#include <gtest/gtest.h>

#include <variant>

#include "tests/support/shard_machine_driver.h"

// Tests of a shard whose policy changes during the run.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using Kind = RoundWork::Kind;

/// One epoch of two mini-batches under `first`, and the rest under `second`, at half the rate.
ShardMachine::Options TwoPolicies(const ConsistencySpec& first, const ConsistencySpec& second) {
  ShardMachine::Options options = TestOptions(first);
  options.until_epoch = 1;
  options.later = {{.consistency = second, .optimizer = options.optimizer}};
  options.later.front().optimizer.learning_rate /= 2;
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

}  // namespace
}  // namespace slipstream
