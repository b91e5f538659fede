#include "server/core/coordinator/returns.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/core/coordinator/generations_fixture.h"

// Tests of the return of shards to checkpoints after their servers were started again.

namespace slipstream {
namespace {

ShardReturn Order(uint64_t generation, const SavedVersion& from) {
  return {.generation = Generation{generation}, .from = from};
}

TEST_F(CoordinatorGenerationsTest, WithoutCheckpointsARestartedServerEndsTheRun) {
  RunSpec spec = Durable();
  spec.durability.level = DurabilitySpec::Level::kMemory;
  TrainDurably(spec);

  Restart(1);

  EXPECT_EQ(coordinator().failure(),
            "the server of shard 1 was restarted; its weights are lost, as the run keeps no "
            "checkpoints (durability.level)");
}

TEST_F(CoordinatorGenerationsTest, AShardReturnsAloneToItsNewestCheckpointInANewGeneration) {
  TrainDurably(Durable());
  Reach(50, {Saved(20), Saved(40)});

  Restart(1);
  EXPECT_EQ(OrderOf(1), ShardReturn()) << "it has yet to say what it has";
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  NameCheckpoints(1);

  EXPECT_EQ(OrderOf(1), Order(1, Saved(40)));
  EXPECT_EQ(OrderOf(0), ShardReturn());
  EXPECT_EQ(
      CountNotes("shard returned to a checkpoint shard=1 generation=1 version=40 versions_lost=10"),
      1);
  EXPECT_EQ(coordinator().returns().shards()[1].versions_lost, 10u);
}

TEST_F(CoordinatorGenerationsTest, AShardThatIsThereIsNotOrderedAgain) {
  TrainDurably(Durable());
  Restart(1);
  NameCheckpoints(1);
  const uint64_t number = coordinator().orders().number;

  Report(1);  // It is still reading.
  Follow(1);
  reports_[1].saved.clear();
  Report(1);

  EXPECT_EQ(coordinator().orders().number, number);
}

TEST_F(CoordinatorGenerationsTest, TheNextProcessDoesNotFollowTheOrderOfTheOneBefore) {
  TrainDurably(Durable());
  Reach(50, {Saved(40)});
  Restart(1);
  NameCheckpoints(1);
  Follow(1);
  reports_[1].version = Version{45};
  Report(1);

  Restart(1);

  EXPECT_EQ(OrderOf(1), ShardReturn()) << "generation 1 has gone on";
  NameCheckpoints(1);
  EXPECT_EQ(OrderOf(1), Order(2, Saved(40)));
  EXPECT_EQ(coordinator().returns().shards()[1].versions_lost, 15u);
}

TEST_F(CoordinatorGenerationsTest, ALaterGenerationIsNewerWhateverItsVersion) {
  TrainDurably(Durable());
  Reach(50, {Saved(40)});
  Restart(1);
  NameCheckpoints(1);
  Follow(1);
  reports_[1].saved.push_back(Saved(10, 1));
  Report(1);

  Restart(1);
  NameCheckpoints(1);

  EXPECT_EQ(OrderOf(1), Order(2, Saved(10, 1)));
}

TEST_F(CoordinatorGenerationsTest, ACheckpointThatCannotBeReadIsFollowedByTheOneBefore) {
  TrainDurably(Durable());
  Reach(50, {Saved(20), Saved(40)});
  Restart(1);
  NameCheckpoints(1);

  reports_[1].saved.pop_back();
  Report(1);

  EXPECT_EQ(OrderOf(1), Order(2, Saved(20)));
  EXPECT_EQ(coordinator().returns().shards()[1].versions_lost, 30u);
}

TEST_F(CoordinatorGenerationsTest, AShardThatHasNoCheckpointEndsTheRun) {
  TrainDurably(Durable());
  Restart(1);
  saved_[1].clear();

  NameCheckpoints(1);

  EXPECT_EQ(coordinator().failure(),
            "the server of shard 1 was restarted before any checkpoint of it was complete; its "
            "weights are lost");
}

TEST_F(CoordinatorGenerationsTest, TheRunDrainsOnlyInTheGenerationThatWasOrdered) {
  TrainDurably(Durable());
  WorkAllAs(ada_);
  ASSERT_EQ(coordinator().phase(), Phase::kDraining);
  reports_[1].drained = true;
  Report(1);
  Restart(1);
  reports_[0].drained = true;
  Report(0);
  NameCheckpoints(1);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);

  reports_[1].initialized = reports_[1].drained = true;  // A report from the generation before.
  Report(1);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  Follow(1);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  reports_[1].drained = true;
  Report(1);

  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
}

TEST_F(CoordinatorGenerationsTest, AShardOutOfStepThatReturnsLateDoesNotTakeTheRunBack) {
  TrainDurably(Durable());
  WorkAllAs(ada_);
  for (uint32_t shard = 0; shard < 2; ++shard) {
    reports_[shard].drained = true;
    Report(shard);
  }
  ASSERT_EQ(coordinator().phase(), Phase::kEvaluating);

  Restart(1);
  NameCheckpoints(1);

  EXPECT_EQ(OrderOf(1).generation, Generation{1});
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
}

TEST_F(CoordinatorGenerationsTest, NobodyDiesWhileAShardIsAway) {
  TrainDurably(Durable());
  Restart(1);
  NameCheckpoints(1);

  LetPass(absl::Minutes(5));

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_EQ(coordinator().membership().live(), 2u);
}

TEST_F(CoordinatorGenerationsTest, AServerThatStaysAwayEndsTheRun) {
  TrainDurably(Durable());

  LetPass(absl::Seconds(61), {0});

  EXPECT_EQ(coordinator().failure(), "the server of shard 1 has not been heard for 1m00s");
}

TEST_F(CoordinatorGenerationsTest, InStepAllReturnToTheNewestVersionThatAllHave) {
  TrainDurably(Durable(Policy::kHardsync));
  Reach(50, {Saved(20)});
  reports_[0].saved.push_back(Saved(40));

  Restart(1);
  EXPECT_EQ(OrderOf(0), ShardReturn()) << "shard 1 has yet to say what it has";
  NameCheckpoints(1);

  EXPECT_EQ(OrderOf(0), Order(1, Saved(20)));
  EXPECT_EQ(OrderOf(1), Order(1, Saved(20)));
  EXPECT_EQ(CountNotes("shard returned to a checkpoint"), 2);
  EXPECT_EQ(coordinator().returns().shards()[0].versions_lost, 30u);
}

/// A coordinator that was restored does not know how far the shard of its own process was. The
/// others have gone on with it.
TEST_F(CoordinatorGenerationsTest, InStepAShardHasLostWhatTheOthersTellOf) {
  TrainDurably(Durable(Policy::kHardsync));
  Reach(20, {Saved(20)});
  reports_[1].version = Version{60};
  Report(1);

  Restart(0);
  NameCheckpoints(0);

  EXPECT_EQ(OrderOf(0), Order(1, Saved(20)));
  EXPECT_EQ(coordinator().returns().shards()[0].versions_lost, 39u) << "version 60 was not certain";
  EXPECT_EQ(coordinator().returns().shards()[1].versions_lost, 40u);
}

TEST_F(CoordinatorGenerationsTest, InStepTheCheckpointThatAllReturnedToIsTheOneToKeep) {
  TrainDurably(Durable(Policy::kHardsync));
  Reach(50, {Saved(20)});
  Reach(60, {Saved(40)});
  ASSERT_EQ(coordinator().orders().save.safe, Saved(40));

  Restart(1);
  saved_[1].pop_back();  // It is damaged.
  NameCheckpoints(1);

  EXPECT_EQ(OrderOf(0), Order(1, Saved(20)));
  EXPECT_EQ(coordinator().orders().save.safe, Saved(20));
}

TEST_F(CoordinatorGenerationsTest, InStepTheNewGenerationIsHigherThanThatOfEveryShard) {
  TrainDurably(Durable(Policy::kHardsync));
  Restart(1);
  NameCheckpoints(1);
  Follow(1);  // Shard 0 has yet to do so.

  Restart(0);
  NameCheckpoints(0);

  EXPECT_EQ(OrderOf(0), Order(2, Saved(0)));
  EXPECT_EQ(OrderOf(1), Order(2, Saved(0)));
}

TEST_F(CoordinatorGenerationsTest, InStepNothingInCommonEndsTheRun) {
  TrainDurably(Durable(Policy::kHardsync));
  reports_[0].saved = {Saved(10)};
  Restart(1);

  NameCheckpoints(1);

  EXPECT_EQ(coordinator().failure(),
            "the server of shard 1 was restarted, and there is no checkpoint that all shards have; "
            "its weights are lost");
}

TEST_F(CoordinatorGenerationsTest, InStepTheEpochsDoneStayKnownWhileShardZeroIsAway) {
  TrainDurably(Durable(Policy::kHardsync));
  reports_[0].batches_of_rounds = 5;
  Reach(5);

  Restart(0);
  EXPECT_EQ(coordinator().batches_done(), 5u);
  NameCheckpoints(0);
  Follow(0);

  EXPECT_EQ(coordinator().batches_done(), 0u);
}

TEST_F(CoordinatorGenerationsTest, ACutAtTheDrainedVersionLeavesThePhaseAsItIs) {
  TrainDurably(Durable(Policy::kHardsync));
  reports_[0].batches_of_rounds = 8;
  Drain(8, {Saved(8)});
  ASSERT_EQ(coordinator().phase(), Phase::kEvaluating);

  Restart(0);
  NameCheckpoints(0);

  EXPECT_EQ(OrderOf(1), Order(1, Saved(8)));
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  EXPECT_EQ(coordinator().orders().drain_version, Version{8});
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
}

TEST_F(CoordinatorGenerationsTest, ACutBeforeTheDrainedVersionMakesTheRunTrainAgain) {
  TrainDurably(Durable(Policy::kHardsync));
  reports_[0].batches_of_rounds = 8;
  Drain(8, {Saved(6)});
  ASSERT_EQ(coordinator().phase(), Phase::kEvaluating);

  Restart(1);
  NameCheckpoints(1);

  EXPECT_EQ(coordinator().orders().phase, Phase::kTraining);
  EXPECT_EQ(coordinator().orders().drain_version, Version{});
  EXPECT_FALSE(coordinator().end_reason().has_value());
  EXPECT_FALSE(coordinator().EvaluationFor(ada_.worker).has_value());
  Report(0);  // It is still drained, in the generation before.
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);

  // It ends as if nothing had been.
  reports_[0].batches_of_rounds = 6;
  Follow(0);
  Follow(1);
  EXPECT_EQ(coordinator().batches_done(), 6u);
  reports_[0].batches_of_rounds = 8;
  Drain(8);
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kEpochs);
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker)->is_final);
}

/// Others may have begun a round after the return, which waits for all members.
TEST_F(CoordinatorGenerationsTest, AWorkerWhoseRoundsAreOverGoesBackAlsoIfWorkHasEndedSince) {
  TrainDurably(Durable(Policy::kHardsync));
  Reach(5);
  Restart(1);
  NameCheckpoints(1);

  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());

  const auto ask = [this](uint64_t generation) {
    return coordinator().AskWork(ada_, {.generation = Generation{generation}})->state;
  };
  EXPECT_EQ(ask(0), WorkState::kReturned);
  EXPECT_EQ(ask(1), WorkState::kWait);
}

TEST_F(CoordinatorGenerationsTest, ACutInAnEarlierStageEndsTheRunUnlessItIsWhereTheStageBegins) {
  RunSpec spec = Durable(Policy::kBackup);
  spec.policies_before = {{.consistency = {.policy = Policy::kHardsync}, .until_epoch = 1}};
  TrainDurably(spec);
  reports_[0].batches_of_rounds = 4;
  Drain(4, {Saved(3), Saved(4)});
  ASSERT_EQ(coordinator().stage(), 1u);
  reports_[0].drained = reports_[1].drained = false;
  Reach(5);

  Restart(1);
  NameCheckpoints(1);
  EXPECT_EQ(OrderOf(1).from, Saved(4));
  EXPECT_EQ(coordinator().orders().stage, 1u);
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  Follow(0);
  Follow(1);

  for (ServerReport& report : reports_) std::erase(report.saved, Saved(4));
  Report(0);
  Restart(1);
  NameCheckpoints(1);
  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
}

TEST_F(CoordinatorGenerationsTest, ACheckpointOfAStageThatIsNotIsRefused) {
  TrainDurably(Durable());
  ServerReport report = reports_[1];
  report.saved = {Saved(1, 0, 7)};

  EXPECT_EQ(coordinator().OnServer(report, now_).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace slipstream
