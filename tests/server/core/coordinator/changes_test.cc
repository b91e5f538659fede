#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/core/run_stages.h"
#include "tests/server/core/coordinator/coordinator_fixture.h"

// Tests of changes to a run while it trains.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

class CoordinatorChangesTest : public CoordinatorTest {
 protected:
  void TrainUnder(const RunSpec& spec) {
    settings_ = spec;
    Train(spec);
  }

  absl::StatusOr<Coordinator::ChangeEffect> SetPolicy(Policy policy) {
    settings_.consistency.policy = policy;
    return coordinator().OnChange({settings_, /*sets_policy=*/true}, now_);
  }

  absl::StatusOr<Coordinator::ChangeEffect> SetRate(double rate) {
    settings_.optimizer.learning_rate = rate;
    return coordinator().OnChange({settings_, /*sets_policy=*/false}, now_);
  }

  WorkState AskIn(uint32_t stage) {
    const auto work = coordinator().AskWork(ada_, {.stage = stage});
    EXPECT_TRUE(work.ok()) << work.status();
    last_work_ = *work;
    return work->state;
  }

  RunSpec settings_;
  WorkAnswer last_work_;
};

TEST_F(CoordinatorChangesTest, APolicyTakesOverAtOnceAndWorkGoesOn) {
  TrainUnder(Spec(Policy::kAsync));
  ASSERT_EQ(AskIn(0), WorkState::kUnit);

  const auto effect = SetPolicy(Policy::kSsp);

  ASSERT_TRUE(effect.ok()) << effect.status();
  EXPECT_EQ(effect->after_epoch, std::nullopt);
  const ServerOrders& orders = coordinator().orders();
  EXPECT_EQ(orders.stage, 1u);
  EXPECT_EQ(orders.phase, Phase::kTraining);
  ASSERT_EQ(orders.stages.size(), 2u);
  EXPECT_EQ(orders.stages[1].consistency.policy, Policy::kSsp);
  EXPECT_TRUE(orders.stages[1].begins_at_once);

  // Workers hear of it once every shard knows, or a shard would not know what they say.
  EXPECT_EQ(AskIn(0), WorkState::kUnit);
  SyncOne(0);
  EXPECT_NE(AskIn(0), WorkState::kStage);
  SyncOne(1);
  EXPECT_EQ(AskIn(0), WorkState::kStage);
  EXPECT_EQ(last_work_.stage, 1u);
  EXPECT_EQ(last_work_.policy, Policy::kSsp);
  EXPECT_EQ(last_work_.since_stage, 0u);
}

TEST_F(CoordinatorChangesTest, ARateIsForAllStagesToCome) {
  RunSpec spec = Spec(Policy::kSoftsync);
  spec.policies_before = {{.consistency = {.policy = Policy::kAsync}, .until_epoch = 1}};
  TrainUnder(spec);

  ASSERT_TRUE(SetRate(0.5).ok());

  const std::vector<RunStage>& stages = coordinator().orders().stages;
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].learning_rate, Spec().optimizer.learning_rate);
  EXPECT_EQ(stages[1].learning_rate, 0.5);
  EXPECT_EQ(stages[1].consistency.policy, Policy::kAsync);
  EXPECT_EQ(stages[1].until_epoch, 1u);
  EXPECT_EQ(stages[2].learning_rate, 0.5);
  EXPECT_EQ(stages[2].consistency.policy, Policy::kSoftsync);
  EXPECT_FALSE(stages[2].begins_at_once);
}

TEST_F(CoordinatorChangesTest, APolicyTakesThePlaceOfThoseOfTheSettings) {
  RunSpec spec = Spec(Policy::kSoftsync);
  spec.policies_before = {{.consistency = {.policy = Policy::kAsync}, .until_epoch = 1}};
  TrainUnder(spec);

  ASSERT_TRUE(SetPolicy(Policy::kSsp).ok());
  Sync();
  // Mini-batches of both epochs are the new policy's: the run ends with these.
  now_ += absl::Seconds(1);
  while (AskIn(1) == WorkState::kUnit) {
    const UnitReport done{last_work_.unit.number, last_work_.unit.batches};
    ASSERT_TRUE(coordinator().OnHeartbeat(ada_, {&done, 1}, now_).ok());
  }

  EXPECT_EQ(coordinator().batches_done(), 8u);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kEpochs);
}

TEST_F(CoordinatorChangesTest, RoundsEndWithTheEpoch) {
  TrainUnder(Spec(Policy::kHardsync));
  batches_ = 1;
  Sync();

  const auto effect = SetPolicy(Policy::kAsync);

  ASSERT_TRUE(effect.ok()) << effect.status();
  EXPECT_EQ(effect->after_epoch, 1u);
  EXPECT_EQ(coordinator().stage(), 0u);
  EXPECT_EQ(coordinator().orders().stages.front().until_epoch, 1u);

  batches_ = 4;
  drained_ = true;
  Sync();
  Sync();
  EXPECT_EQ(coordinator().stage(), 1u);
  drained_ = false;
  Sync();
  EXPECT_EQ(AskIn(0), WorkState::kStage);
  EXPECT_EQ(last_work_.since_stage, 1u);
  EXPECT_EQ(AskIn(1), WorkState::kUnit);
  EXPECT_EQ(last_work_.unit.first, 4u);

  // A worker that is still in the rounds gets no units, also while a further stage opens.
  ASSERT_TRUE(SetRate(0.5).ok());
  EXPECT_EQ(coordinator().stage(), 2u);
  EXPECT_NE(AskIn(0), WorkState::kUnit);
}

/// The coordinator's news of shard 0 are always a little old.
TEST_F(CoordinatorChangesTest, TheEpochThatShardZeroHadBegunIsPartOfTheRounds) {
  RunSpec spec = Spec(Policy::kHardsync);
  spec.training.epochs = 4;
  TrainUnder(spec);
  ASSERT_EQ(SetPolicy(Policy::kAsync)->after_epoch, 1u);

  batches_ = 8;
  drained_ = true;
  Sync();
  Sync();
  drained_ = false;
  Sync();

  ASSERT_EQ(coordinator().stage(), 1u);
  EXPECT_EQ(AskIn(1), WorkState::kUnit);
  EXPECT_EQ(last_work_.unit.first, 8u);
  EXPECT_EQ(coordinator().batches_done(), 8u);
}

TEST_F(CoordinatorChangesTest, RefusesWhatCannotBe) {
  TrainUnder(Spec(Policy::kAsync));
  for (const Policy policy : {Policy::kHardsync, Policy::kBackup}) {
    const auto refused = SetPolicy(policy);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
    EXPECT_NE(refused.status().message().find("need all shards at one version"), std::string::npos)
        << refused.status();
  }
  EXPECT_TRUE(coordinator().orders().stages.empty());
}

TEST_F(CoordinatorChangesTest, AnAdditionInPlaceIsForAWholeRun) {
  TrainUnder(Spec(Policy::kAsync));
  EXPECT_TRUE(absl::IsFailedPrecondition(SetPolicy(Policy::kHogwild).status()));
  TrainUnder(Spec(Policy::kHogwild));
  EXPECT_TRUE(absl::IsFailedPrecondition(SetPolicy(Policy::kAsync).status()));
  EXPECT_TRUE(SetRate(0.5).ok());
}

TEST_F(CoordinatorChangesTest, RefusesAChangeInTheLastEpochOfRounds) {
  TrainUnder(Spec(Policy::kHardsync));
  batches_ = 5;
  Sync();

  EXPECT_TRUE(absl::IsFailedPrecondition(SetRate(0.5).status()));
  // The rate in force may be said again.
  EXPECT_TRUE(SetRate(RunSpec().optimizer.learning_rate).ok());
}

TEST_F(CoordinatorChangesTest, TheLastEpochOfRoundsMayBeOneThatMaxStepsCutsShort) {
  RunSpec spec = Spec(Policy::kHardsync);
  spec.training.epochs = 100;
  spec.training.max_steps = 6;  // An epoch has four.
  TrainUnder(spec);
  batches_ = 5;
  Sync();

  EXPECT_TRUE(absl::IsFailedPrecondition(SetRate(0.5).status()));
}

TEST_F(CoordinatorChangesTest, RefusesAChangeBeforeTrainingAndOnceItEnds) {
  Use(Spec(Policy::kAsync));
  settings_ = Spec(Policy::kAsync);
  EXPECT_TRUE(absl::IsFailedPrecondition(SetRate(0.5).status()));

  TrainUnder(Spec(Policy::kAsync));
  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(SetRate(0.5).status()));
}

TEST_F(CoordinatorChangesTest, AChangeThatIsRepeatedChangesNothing) {
  TrainUnder(Spec(Policy::kAsync));
  ASSERT_TRUE(SetPolicy(Policy::kSsp).ok());
  ASSERT_TRUE(SetRate(0.5).ok());
  const uint64_t orders = coordinator().orders().number;

  ASSERT_TRUE(SetPolicy(Policy::kSsp).ok());
  ASSERT_TRUE(SetRate(0.5).ok());

  EXPECT_EQ(coordinator().orders().number, orders);
  EXPECT_EQ(coordinator().stage(), 2u);
}

TEST_F(CoordinatorChangesTest, ARunIsNotChangedWithoutEnd) {
  TrainUnder(Spec(Policy::kAsync));
  absl::Status last;
  size_t changes = 0;
  for (; last.ok() && changes < 2 * kRunStagesMax; ++changes) {
    last = SetRate(1.0 + static_cast<double>(changes)).status();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(last)) << last;
  EXPECT_EQ(changes, kRunStagesMax);
}

}  // namespace
}  // namespace slipstream
