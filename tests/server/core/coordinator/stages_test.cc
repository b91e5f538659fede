#include <gtest/gtest.h>

#include <optional>

#include "tests/server/core/coordinator/coordinator_fixture.h"

// Tests of a run whose first epochs have other policies than its last.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

class CoordinatorStagesTest : public CoordinatorTest {
 protected:
  /// One epoch under `first`, and one under softsync.
  static RunSpec TwoPolicies(Policy first) {
    RunSpec spec = Spec();
    spec.policies_before = {{.consistency = {.policy = first}, .until_epoch = 1}};
    return spec;
  }

  WorkState AskIn(uint32_t stage) {
    const auto work = coordinator().AskWork(ada_, {.stage = stage});
    EXPECT_TRUE(work.ok()) << work.status();
    last_unit_ = work->unit;
    last_stage_ = work->stage;
    return work->state;
  }

  /// Reports that both shards have drained, and then that they know of what followed from that.
  void DrainAll() {
    drained_ = true;
    Sync();
    drained_ = false;
  }

  uint32_t last_stage_ = 0;
};

TEST_F(CoordinatorStagesTest, GoesFromRoundsToUnitsOnceEveryShardHasDrainedAndKnows) {
  Train(TwoPolicies(Policy::kHardsync));
  EXPECT_EQ(AskIn(0), WorkState::kWait);  // Shard 0 names the mini-batches.

  batches_ = 4;
  drained_ = true;
  SyncOne(0);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  EXPECT_EQ(coordinator().stage(), 0u);
  EXPECT_EQ(AskIn(0), WorkState::kWait);
  Sync();
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_EQ(coordinator().orders().stage, 1u);
  EXPECT_EQ(coordinator().orders().drain_version, Version{});

  // A shard that does not know would take gradients by the policy before.
  drained_ = false;
  SyncOne(0);
  EXPECT_EQ(AskIn(0), WorkState::kWait);
  const uint64_t changes = coordinator().changes();
  SyncOne(1);
  EXPECT_GT(coordinator().changes(), changes);  // Calls that wait are answered.
  EXPECT_EQ(AskIn(0), WorkState::kStage);
  EXPECT_EQ(last_stage_, 1u);

  EXPECT_EQ(AskIn(1), WorkState::kUnit);
  EXPECT_EQ(last_unit_.first, 4u);
  EXPECT_EQ(coordinator().batches_done(), 4u);
  EXPECT_EQ(coordinator().epochs_done(), 1u);
}

TEST_F(CoordinatorStagesTest, AReportFromBeforeTheStageDoesNotEndIt) {
  Train([] {
    RunSpec spec = TwoPolicies(Policy::kHardsync);
    spec.consistency.policy = Policy::kBackup;
    return spec;
  }());
  batches_ = 4;
  drained_ = true;
  Sync();  // Shard 0 has done the last round of the stage.
  DrainAll();
  ASSERT_EQ(coordinator().stage(), 1u);
  ASSERT_EQ(coordinator().phase(), Phase::kTraining);

  coordinator().Tick(now_);  // The newest report says that shard 0 has drained.

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  Sync();
  EXPECT_EQ(AskIn(0), WorkState::kStage);
  EXPECT_EQ(AskIn(1), WorkState::kWait);
  batches_ = 8;
  drained_ = true;
  SyncOne(0);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  DrainAll();
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kEpochs);
}

/// Shards may wait for it: in a round, or for its clock.
TEST_F(CoordinatorStagesTest, AWorkerThatIsBehindIsSentToTheStageThatEnds) {
  RunSpec spec = TwoPolicies(Policy::kBackup);
  spec.consistency.policy = Policy::kHardsync;
  Train(spec);
  batches_ = 4;
  drained_ = true;
  Sync();
  DrainAll();
  Sync();
  ASSERT_EQ(coordinator().stage(), 1u);

  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());

  EXPECT_EQ(AskIn(0), WorkState::kStage);
  EXPECT_EQ(AskIn(1), WorkState::kFinished);
}

TEST_F(CoordinatorStagesTest, HandsOutNoUnitOfTheNextStageBeforeTheStageIsDone) {
  Train(TwoPolicies(Policy::kAsync));
  WorkAllAs(ada_);
  EXPECT_EQ(coordinator().batches_done(), 4u);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);

  DrainAll();
  Sync();

  EXPECT_EQ(AskIn(0), WorkState::kStage);
  EXPECT_EQ(AskIn(1), WorkState::kUnit);
  EXPECT_EQ(last_unit_.first, 4u);
}

TEST_F(CoordinatorStagesTest, AnEndBetweenTwoStagesIsTheEnd) {
  Train(TwoPolicies(Policy::kAsync));
  WorkAllAs(ada_);
  ASSERT_EQ(coordinator().phase(), Phase::kDraining);

  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());
  EXPECT_EQ(AskIn(0), WorkState::kFinished);
  DrainAll();

  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  EXPECT_EQ(coordinator().stage(), 0u);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kInterrupted);
}

TEST_F(CoordinatorStagesTest, MaxStepsMayEndTheRunBeforeItsLastPolicy) {
  RunSpec spec = TwoPolicies(Policy::kAsync);
  spec.training.max_steps = 4;
  Train(spec);
  WorkAllAs(ada_);
  DrainAll();

  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kMaxSteps);
}

}  // namespace
}  // namespace slipstream
