#include <gtest/gtest.h>

#include <optional>

#include "tests/server/core/coordinator/generations_fixture.h"

// Tests of runs whose shards keep a log: a shard goes on where it was, and nobody returns.

namespace slipstream {
namespace {

class CoordinatorLogTest : public CoordinatorGenerationsTest {
 protected:
  static RunSpec Logged(Policy policy = Policy::kSoftsync) {
    RunSpec spec = Durable(policy);
    spec.durability.level = DurabilitySpec::Level::kSynced;
    return spec;
  }

  /// The new process of the shard has redone the log, up to this version.
  void GoOn(uint32_t shard, uint64_t version) {
    reports_[shard].initialized = true;
    reports_[shard].version = Version{version};
    Report(shard);
  }
};

TEST_F(CoordinatorLogTest, UnderEveryPolicyTheRunWaitsForTheShardAndNobodyReturns) {
  for (const Policy policy : {Policy::kSoftsync, Policy::kAsync, Policy::kHardsync}) {
    initialized_ = false;
    TrainDurably(Logged(policy));
    Reach(50, {Saved(20), Saved(40)});

    Restart(1);
    EXPECT_EQ(CountNotes("server replaced shard=1"), 1);
    NameCheckpoints(1);
    LetPass(absl::Minutes(10));
    EXPECT_EQ(coordinator().phase(), Phase::kTraining);
    GoOn(1, 50);
    Reach(51);

    EXPECT_EQ(OrderOf(0), ShardReturn());
    EXPECT_EQ(OrderOf(1), ShardReturn());
    EXPECT_EQ(coordinator().returns().shards()[1].versions_lost, 0u);
    EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  }
}

TEST_F(CoordinatorLogTest, AServerWithoutItsDirectoryEndsTheRun) {
  TrainDurably(Logged(Policy::kHardsync));
  Reach(50, {Saved(40)});
  Restart(1);
  EXPECT_EQ(coordinator().phase(), Phase::kTraining) << "it has yet to look for checkpoints";
  saved_[1].clear();

  NameCheckpoints(1);

  EXPECT_EQ(coordinator().failure(),
            "the server of shard 1 was restarted, and its directory has no checkpoint of the run "
            "(durability.directory); its weights are lost");
}

TEST_F(CoordinatorLogTest, AnOlderCopyOfAShardIsRefusedUnlessItsServerWasToldToGoOn) {
  for (const bool accepts : {false, true}) {
    initialized_ = false;
    TrainDurably(Logged(Policy::kAsync));
    Reach(50, {Saved(20), Saved(40)});
    Restart(1);
    reports_[1].orders_seen = coordinator().orders().number;
    reports_[1].initialized = true;
    reports_[1].version = Version{49};
    reports_[1].accepts_rollback = accepts;
    ++reports_[1].number;

    const absl::Status taken = coordinator().OnServer(reports_[1], now_);

    EXPECT_EQ(taken.code(), accepts ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss);
    EXPECT_EQ(CountNotes("a shard goes on from an older state, as its server was told to shard=1 "
                         "version=49 known=50"),
              accepts ? 1 : 0);
    EXPECT_EQ(coordinator().phase(), Phase::kTraining);
    reports_[1].version = Version{50};  // The newest copy.
    reports_[1].accepts_rollback = false;
    Report(1);
  }
}

TEST_F(CoordinatorLogTest, AReportThatComesLateIsNoOlderCopy) {
  TrainDurably(Logged(Policy::kAsync));
  Reach(50, {Saved(20), Saved(40)});
  ServerReport late = reports_[1];
  Reach(51);

  late.version = Version{49};
  --late.number;

  EXPECT_TRUE(coordinator().OnServer(late, now_).ok());
}

TEST_F(CoordinatorLogTest, BeforeTrainingTheWeightsAreSentAnew) {
  Use(Logged());
  Sync();
  ada_ = Join();
  bob_ = Join();
  ASSERT_EQ(Prepare(ada_), PreparationState::kGranted);
  ASSERT_EQ(Prepare(bob_), PreparationState::kWait);
  const uint64_t grant = coordinator().orders().grant;
  now_ += absl::Seconds(2);
  instance_[1] = 100;

  SyncOne(1);

  EXPECT_EQ(coordinator().phase(), Phase::kInitializing);
  EXPECT_GT(coordinator().orders().grant, grant);
}

TEST_F(CoordinatorLogTest, InRoundsEachShardSavesItsNextVersionToo) {
  TrainDurably(Logged(Policy::kHardsync));
  coordinator().Tick(now_);
  Reach(30);
  LetPass(absl::Seconds(10));

  EXPECT_EQ(coordinator().orders().save, (SaveOrder{.number = 1}));
}

TEST_F(CoordinatorLogTest, ACheckpointThatWasNotCompleteIsNotWaitedFor) {
  TrainDurably(Logged());
  coordinator().Tick(now_);
  Reach(30);
  LetPass(absl::Seconds(10));
  ASSERT_EQ(coordinator().orders().save.number, 1u);
  reports_[0].saved.push_back(Saved(31));
  Reach(32);

  Restart(1);
  NameCheckpoints(1);
  LetPass(absl::Seconds(20));
  EXPECT_EQ(coordinator().orders().save.number, 1u) << "shard 1 is away";
  GoOn(1, 32);
  LetPass(absl::Seconds(11));

  EXPECT_EQ(coordinator().orders().save.number, 2u);
}

TEST_F(CoordinatorLogTest, InRoundsWorkersAreDoneOnceTheirRoundsAre) {
  TrainDurably(Logged(Policy::kHardsync));
  reports_[0].batches_of_rounds = 8;
  reports_[0].drained = true;
  Reach(8);
  ASSERT_EQ(coordinator().phase(), Phase::kDraining);

  EXPECT_EQ(Ask(ada_), WorkState::kFinished) << "no round comes again";
}

TEST_F(CoordinatorLogTest, TheRunDrainsOnceTheShardIsBack) {
  TrainDurably(Logged());
  WorkAllAs(ada_);
  ASSERT_EQ(coordinator().phase(), Phase::kDraining);
  reports_[1].drained = true;
  Report(1);
  Restart(1);
  NameCheckpoints(1);
  reports_[0].drained = true;
  Report(0);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);

  reports_[1].drained = true;
  GoOn(1, 9);

  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
}

TEST_F(CoordinatorLogTest, AnEvaluatorHasTimeWhileAShardIsAway) {
  TrainDurably(Logged());
  WorkAllAs(ada_);
  for (uint32_t shard = 0; shard < 2; ++shard) {
    reports_[shard].drained = true;
    Report(shard);
  }
  ASSERT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  Restart(1);
  NameCheckpoints(1);

  LetPass(absl::Minutes(5));
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  GoOn(1, 9);
  LetPass(absl::Seconds(62));

  EXPECT_FALSE(coordinator().EvaluationFor(ada_.worker).has_value());
}

TEST_F(CoordinatorLogTest, AWorkerThatDiesMeanwhileHasDoneWhatTheShardTold) {
  RunSpec spec = Logged();
  TrainDurably(spec);
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  ASSERT_GE(last_unit_.batches, 1u);
  const uint64_t first = last_unit_.first;
  reports_[1].pushed = {{ada_.worker, ada_.incarnation, first + 1, WorkerClock{1}}};
  Report(1);
  Restart(1);
  ASSERT_TRUE(reports_[1].pushed.empty());

  ASSERT_TRUE(coordinator().OnLeave(ada_, "killed", now_).ok());

  EXPECT_EQ(coordinator().batches_done(), 1u);
}

}  // namespace
}  // namespace slipstream
