#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/server/core/coordinator/generations_fixture.h"

// Tests of what the coordinator does when workers are lost: whether their places in the view are
// kept for others, and when the run gives up.

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class CoordinatorLossesTest : public CoordinatorGenerationsTest {
 protected:
  static RunSpec Waiting(Policy policy = Policy::kHardsync) {
    RunSpec spec = Spec(policy);
    spec.cluster.on_worker_loss = ClusterSpec::OnWorkerLoss::kWait;
    return spec;
  }

  const std::vector<Member>& Members() { return coordinator().orders().view.members; }

  Identity JoinAs(uint32_t worker) {
    const auto identity = coordinator().OnRegister({.worker = WorkerId{worker}}, now_);
    EXPECT_TRUE(identity.ok()) << identity.status();
    return *identity;
  }
};

TEST_F(CoordinatorLossesTest, RoundsGoOnWithoutALostWorkerByDefault) {
  Train(Spec(Policy::kHardsync));

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(6), {ada_}));

  EXPECT_THAT(Members(), ElementsAre(Member{ada_.worker, ada_.incarnation, true}));
  EXPECT_FALSE(coordinator().Missing(now_).has_value());
}

TEST_F(CoordinatorLossesTest, KeepsThePlaceOfALostWorkerAndSaysForHowLong) {
  Train(Waiting());

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(10), {ada_}));

  EXPECT_THAT(Members(), ElementsAre(Member{ada_.worker, ada_.incarnation, true},
                                     Member{bob_.worker, bob_.incarnation, true}));
  const auto missing = coordinator().Missing(now_);
  ASSERT_TRUE(missing.has_value());
  EXPECT_THAT(missing->workers, ElementsAre(bob_.worker));
  EXPECT_EQ(missing->gone_for, absl::Seconds(4)) << "since the lease of 5 s was over, at 6 s";
  EXPECT_EQ(missing->fails_in, absl::Seconds(56));
}

TEST_F(CoordinatorLossesTest, AWorkerThatLeavesIsAwaitedToo) {
  Train(Waiting());

  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());

  EXPECT_EQ(Members().size(), 2u);
  EXPECT_EQ(CountNotes("waiting for another worker in the place of one that is gone"), 1);
}

TEST_F(CoordinatorLossesTest, AnotherWorkerTakesThePlaceAndOwesTheOpenRound) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnLeave(ada_, "killed", now_).ok());

  const Identity cleo = Join();

  EXPECT_EQ(cleo.worker, ada_.worker) << "the place that is empty";
  EXPECT_THAT(Members(), ElementsAre(Member{cleo.worker, cleo.incarnation, true},
                                     Member{bob_.worker, bob_.incarnation, true}));
  EXPECT_FALSE(coordinator().Missing(now_).has_value());
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Minutes(3), {cleo, bob_}));
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
}

TEST_F(CoordinatorLossesTest, AWorkerThatIsStartedAnewOwesTheOpenRoundAtOnce) {
  Train(Waiting());

  const Identity again = JoinAs(1);

  EXPECT_THAT(Members(), ElementsAre(Member{ada_.worker, ada_.incarnation, true},
                                     Member{WorkerId{1}, again.incarnation, true}));
}

TEST_F(CoordinatorLossesTest, AWorkerUnderAnotherIdTakesNoPlace) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());

  const Identity eve = JoinAs(7);

  EXPECT_EQ(Members().size(), 3u);
  EXPECT_EQ(Members().back(), (Member{eve.worker, eve.incarnation, false}));
  EXPECT_TRUE(coordinator().Missing(now_).has_value());
}

TEST_F(CoordinatorLossesTest, FailsNamingTheWorkerInWhosePlaceNobodyCame) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "no memory", now_).ok());

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(60), {ada_}));
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  now_ += absl::Milliseconds(1);
  coordinator().Tick(now_);

  EXPECT_EQ(coordinator().failure(),
            "worker 1 on host is gone (no memory), and no other took its place within 1m00s "
            "(cluster.on_worker_loss wait, cluster.start_timeout)");
}

TEST_F(CoordinatorLossesTest, TheTimeCountsAnewForEachLoss) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(40), {ada_}));
  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  const Identity bob = JoinAs(1);

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(40), {bob}));

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_EQ(coordinator().Missing(now_)->gone_for, absl::Seconds(40));
}

TEST_F(CoordinatorLossesTest, BackupWaitsOnlyForMoreWorkersThanItsRoundsDoWithout) {
  RunSpec spec = Waiting(Policy::kBackup);
  spec.consistency.parameters["backups"] = 1;
  Train(spec);
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Minutes(2), {ada_}));

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_FALSE(coordinator().Missing(now_).has_value());
  EXPECT_EQ(Members().size(), 2u) << "the place stays for a worker that comes later";
}

TEST_F(CoordinatorLossesTest, GivesUpEmptyPlacesWhenNoRoundNeedsThemAnyMore) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());

  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());

  EXPECT_THAT(Members(), ElementsAre(Member{ada_.worker, ada_.incarnation, true}));
  EXPECT_FALSE(coordinator().Missing(now_).has_value());
}

TEST_F(CoordinatorLossesTest, APlaceStaysEmptyAcrossARestartOfTheCoordinator) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  const std::string saved = coordinator().Save();
  now_ += absl::Seconds(50);

  Use(Waiting());
  ASSERT_TRUE(coordinator().Restore(saved, now_).ok());
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(20), {ada_}));

  EXPECT_EQ(coordinator().Missing(now_)->gone_for, absl::Seconds(20)) << "timeouts begin anew";
  EXPECT_EQ(JoinAs(1).worker, bob_.worker);
  EXPECT_TRUE(Members().back().founding);
}

TEST_F(CoordinatorLossesTest, FailsIfTooFewWorkersAreLeftForTooLong) {
  RunSpec spec = Spec();
  spec.cluster.min_workers = 2;
  Train(spec);
  ASSERT_TRUE(coordinator().OnLeave(bob_, "no memory", now_).ok());
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(59), {ada_}));
  EXPECT_EQ(Ask(ada_), WorkState::kUnit) << "those that are left go on meanwhile";
  const auto missing = coordinator().Missing(now_);
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->more_workers, 1u);

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(2), {ada_}));

  EXPECT_EQ(coordinator().failure(),
            "1 worker is left of at least 2 (cluster.min_workers), and not enough came within "
            "1m00s; worker 1: no memory");
}

TEST_F(CoordinatorLossesTest, GoesOnIfWorkersComeBackInTime) {
  RunSpec spec = Spec();
  spec.cluster.min_workers = 2;
  Train(spec);
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(50), {ada_}));

  const Identity cleo = Join();
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(50), {ada_, cleo}));

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_FALSE(coordinator().Missing(now_).has_value());
}

/// Both shards have made version 3 when too few workers have been left for too long.
class CoordinatorStopsSavingTest : public CoordinatorLossesTest {
 protected:
  void LoseWorkers(Policy policy) {
    RunSpec spec = Durable(policy);
    spec.cluster.min_workers = 2;
    ASSERT_NO_FATAL_FAILURE(TrainDurably(spec));
    ASSERT_NO_FATAL_FAILURE(Reach(3));
    ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
    PassTime(absl::Seconds(62));
  }

  void PassTime(absl::Duration duration) {
    for (const absl::Time end = now_ + duration; now_ < end; now_ += absl::Seconds(1)) {
      for (uint32_t shard = 0; shard < 2; ++shard) Report(shard);
      ASSERT_TRUE(coordinator().OnHeartbeat(ada_, {}, now_).ok());
      coordinator().Tick(now_);
    }
  }
};

TEST_F(CoordinatorStopsSavingTest, FailsOnceAllShardsHaveSavedTheirLastVersions) {
  ASSERT_NO_FATAL_FAILURE(LoseWorkers(Policy::kHardsync));
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kTooFewWorkers);
  EXPECT_TRUE(coordinator().orders().ends_work);

  Drain(4);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining) << "version 4 is not saved yet";
  reports_[0].saved.push_back(Saved(4));
  Report(0);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  reports_[1].saved.push_back(Saved(4));
  Report(1);

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_THAT(coordinator().failure(), StartsWith("1 worker is left of at least 2"));
  EXPECT_THAT(coordinator().failure(), HasSubstr("the last weights are saved"));
}

TEST_F(CoordinatorStopsSavingTest, StopsInTheSameWayAfterARestartOfTheCoordinator) {
  ASSERT_NO_FATAL_FAILURE(LoseWorkers(Policy::kHardsync));
  const std::string saved = coordinator().Save();

  RunSpec spec = Durable(Policy::kHardsync);
  spec.cluster.min_workers = 2;
  Use(spec);
  ASSERT_TRUE(coordinator().Restore(saved, now_).ok());
  for (uint32_t shard = 0; shard < 2; ++shard) Report(shard);
  Drain(4, {Saved(4)});

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_THAT(coordinator().failure(), HasSubstr("the last weights are saved"));
}

TEST_F(CoordinatorStopsSavingTest, DoesNotWaitForEverForADiskThatTakesNothing) {
  ASSERT_NO_FATAL_FAILURE(LoseWorkers(Policy::kHardsync));
  Drain(4);

  PassTime(absl::Seconds(62));

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_THAT(coordinator().failure(), EndsWith("could not be saved (durability.directory)"));
}

TEST_F(CoordinatorStopsSavingTest, DoesNotWaitForEverForAServerThatNeverGoesOn) {
  RunSpec spec = Durable();
  spec.durability.level = DurabilitySpec::Level::kSynced;
  ASSERT_NO_FATAL_FAILURE(TrainDurably(spec));
  ASSERT_NO_FATAL_FAILURE(Reach(3, {Saved(3)}));
  Restart(1);
  NameCheckpoints(1);
  coordinator().Tick(now_);
  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  const auto pass = [this] {
    for (int second = 0; second < 62; ++second) {
      now_ += absl::Seconds(1);
      for (uint32_t shard = 0; shard < 2; ++shard) Report(shard);
      coordinator().Tick(now_);
    }
  };

  pass();
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  EXPECT_FALSE(coordinator().Missing(now_).has_value()) << "nobody is waited for any more";
  pass();

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_THAT(coordinator().failure(), EndsWith("could not be saved (durability.directory)"));
}

TEST_F(CoordinatorStopsSavingTest, ARunThatAllWorkersHaveLeftIsSavedToo) {
  ASSERT_NO_FATAL_FAILURE(TrainDurably(Durable()));
  ASSERT_NO_FATAL_FAILURE(Reach(3));
  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  for (int second = 0; second < 62; ++second) {
    now_ += absl::Seconds(1);
    for (uint32_t shard = 0; shard < 2; ++shard) Report(shard);
    coordinator().Tick(now_);
  }
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);

  Drain(3, {Saved(3)});

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_THAT(coordinator().failure(), StartsWith("all workers are gone"));
  EXPECT_THAT(coordinator().failure(), HasSubstr("the last weights are saved"));
}

}  // namespace
}  // namespace slipstream
