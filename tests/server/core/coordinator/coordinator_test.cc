#include "server/core/coordinator/coordinator.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/core/coordinator/coordinator_fixture.h"

// Tests of the phases of a run, and of what ends it.

namespace slipstream {
namespace {

TEST_F(CoordinatorTest, WaitsForAllServersBeforeAnyWorkerRegisters) {
  Use(Spec());
  SyncOne(0);

  const auto early = coordinator().OnRegister({}, now_);
  EXPECT_EQ(early.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(early.status().message(), "waiting for the servers of shard 1 (b:2)");

  SyncOne(1);
  EXPECT_EQ(coordinator().phase(), Phase::kWaitingForWorkers);
  Join();
}

TEST_F(CoordinatorTest, ServersLearnOfTheViewOnlyWhenAllWorkersAreThere) {
  Use(Spec());
  Sync();
  Join();
  EXPECT_EQ(coordinator().orders().view, View{});

  Join();

  EXPECT_EQ(coordinator().phase(), Phase::kInitializing);
  const View& view = coordinator().orders().view;
  ASSERT_EQ(view.members.size(), 2u);
  EXPECT_TRUE(view.members[0].founding && view.members[1].founding);
}

TEST_F(CoordinatorTest, ModelReachesTheServersWithItsCounts) {
  Train(Spec());

  const ModelOrders& model = *coordinator().orders().model;
  EXPECT_EQ(model.layout, Layout());
  EXPECT_EQ(model.shard_map.shards(), 2u);
  EXPECT_EQ(model.batches_per_epoch, 4u);
  EXPECT_EQ(model.batches_total, 8u);
  EXPECT_EQ(model.examples_per_epoch, 100u);
}

TEST_F(CoordinatorTest, TrainingWaitsForEveryServerToHoldTheWeightsOfTheNewestGrant) {
  Use(Spec());
  Sync();
  const Identity ada = Join();
  const Identity bob = Join();
  initialized_ = true;
  ASSERT_EQ(Prepare(ada), PreparationState::kGranted);
  const uint64_t first = coordinator().orders().number;
  ASSERT_EQ(Prepare(bob), PreparationState::kWait);

  ASSERT_TRUE(coordinator().OnLeave(ada, "disk full", now_).ok());
  ASSERT_EQ(Prepare(bob), PreparationState::kGranted);
  ASSERT_TRUE(coordinator().OnFinishInitialization(bob, 2, now_).ok());

  EXPECT_GT(coordinator().orders().number, first);
  EXPECT_EQ(coordinator().phase(), Phase::kInitializing) << "the reports are of the old grant";
  Sync();
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_EQ(Prepare(bob), PreparationState::kReady);
}

TEST_F(CoordinatorTest, RunsThroughAllPhasesToItsEnd) {
  Train(Spec());
  now_ += absl::Seconds(2);

  WorkAllAs(ada_);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  EXPECT_EQ(Ask(bob_), WorkState::kFinished);
  Sync();
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  drained_ = true;
  Sync();
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);

  // The evaluation of epoch 1 was ordered while training and comes first.
  auto order = coordinator().EvaluationFor(ada_.worker);
  ASSERT_TRUE(order.has_value() && !order->is_final);
  ASSERT_TRUE(coordinator().OnReport(ada_, order->number, {}, "", now_).ok());
  order = coordinator().EvaluationFor(ada_.worker);
  ASSERT_TRUE(order.has_value() && order->is_final);
  ASSERT_TRUE(coordinator().OnReport(ada_, order->number, {}, kHash, now_).ok());

  EXPECT_EQ(coordinator().phase(), Phase::kFinished);
  EXPECT_EQ(coordinator().epochs_done(), 2u);
  EXPECT_EQ(coordinator().TrainingTime(now_ + absl::Hours(1)), absl::Seconds(2));
  EXPECT_EQ(coordinator().OnRegister({}, now_).status().code(), absl::StatusCode::kOutOfRange)
      << "who comes late has nothing to do";
}

TEST_F(CoordinatorTest, AWorkerMayEndTheRunWithItsFailure) {
  Train(Spec());

  ASSERT_TRUE(coordinator().OnLeave(ada_, "no finite numbers", now_, true).ok());

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_EQ(coordinator().failure(), "worker 0: no finite numbers");
  ASSERT_TRUE(coordinator().OnLeave(bob_, "another", now_, true).ok());
  EXPECT_EQ(coordinator().failure(), "worker 0: no finite numbers");
}

TEST_F(CoordinatorTest, ServersMayExitOnceAllWorkersHaveLeftAndTheyKnowIt) {
  RunSpec spec = Spec();
  spec.evaluation.every_epochs = 0;
  Train(spec);
  WorkAllAs(ada_);
  drained_ = true;
  Sync();
  ASSERT_TRUE(coordinator().OnReport(ada_, 1, {}, kHash, now_).ok());

  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  EXPECT_FALSE(coordinator().orders().may_exit);
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  EXPECT_TRUE(coordinator().orders().may_exit);

  EXPECT_FALSE(coordinator().ServersMayStop(now_));
  SyncOne(0);
  EXPECT_FALSE(coordinator().ServersMayStop(now_));
  SyncOne(1);
  EXPECT_TRUE(coordinator().ServersMayStop(now_));
}

TEST_F(CoordinatorTest, ServersStayIfTheRunSaysSo) {
  RunSpec spec = Spec();
  spec.evaluation.every_epochs = 0;
  spec.run.after = RunControlSpec::After::kStay;
  Train(spec);
  WorkAllAs(ada_);
  drained_ = true;
  Sync();
  ASSERT_TRUE(coordinator().OnReport(ada_, 1, {}, kHash, now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());

  EXPECT_FALSE(coordinator().orders().may_exit);
}

TEST_F(CoordinatorTest, HardsyncEndsWhenShardZeroHasAppliedEveryMiniBatch) {
  Train(Spec(ConsistencySpec::Policy::kHardsync));
  batches_ = 5;
  Sync();
  EXPECT_EQ(coordinator().epochs_done(), 1u);
  EXPECT_EQ(coordinator().batches_done(), 5u);
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  EXPECT_EQ(coordinator().AskWork(ada_, {})->state, WorkState::kWait);

  batches_ = 8;
  drained_ = true;
  SyncOne(0);

  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  Sync();
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  EXPECT_EQ(coordinator().epochs_done(), 2u);
}

TEST_F(CoordinatorTest, AnotherTakesOverTheWorkOfADeadWorker) {
  Train(Spec());
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  const WorkLedger::Unit of_ada = last_unit_;
  const uint64_t changes = coordinator().changes();

  Pass(absl::Seconds(6), {bob_});

  EXPECT_GT(coordinator().changes(), changes);
  ASSERT_EQ(Ask(bob_), WorkState::kUnit);
  EXPECT_EQ(last_unit_.first, of_ada.first);
  EXPECT_EQ(coordinator().orders().view.members.size(), 1u);
  EXPECT_FALSE(coordinator().AskWork(ada_, {}).ok());
}

TEST_F(CoordinatorTest, ARestartedWorkerRejoinsWhileTraining) {
  Train(Spec());
  const View before = coordinator().orders().view;

  const auto again = coordinator().OnRegister({.worker = ada_.worker}, now_);
  ASSERT_TRUE(again.ok());

  EXPECT_EQ(Prepare(*again), PreparationState::kReady);
  EXPECT_GT(coordinator().orders().view.number, before.number);
  EXPECT_FALSE(coordinator().orders().view.Find(ada_.worker)->founding);
  EXPECT_FALSE(coordinator().OnHeartbeat(ada_, {}, now_).ok());
}

TEST_F(CoordinatorTest, AServerTurnedAwayIsNotedOnceForEachReason) {
  Use(Spec());
  Sync();
  ServerReport second;
  second.shard = ShardId{1};
  second.instance = 99;
  second.address = "b:2";
  coordinator().TakeNotes();

  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_FALSE(coordinator().OnServer(second, now_).ok());
  }
  EXPECT_EQ(CountNotes(
                "server refused shard=1 address=b:2 reason=\"shard 1 is served by another process"),
            1);

  second.orders_seen = coordinator().orders().number + 1;
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_FALSE(coordinator().OnServer(second, now_).ok());
  }
  EXPECT_EQ(CountNotes("server refused"), 1);
}

TEST_F(CoordinatorTest, FailsNamingTheServersThatDidNotCome) {
  Use(Spec());
  SyncOne(0);

  for (int second = 0; second < 60; ++second) {
    now_ += absl::Seconds(1);
    SyncOne(0);
    coordinator().Tick(now_);
  }
  EXPECT_EQ(coordinator().phase(), Phase::kWaitingForServers);
  now_ += absl::Milliseconds(1);
  coordinator().Tick(now_);

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_EQ(coordinator().failure(), "no server came within 1m00s for shard 1 (b:2)");
}

TEST_F(CoordinatorTest, FailsNamingTheWorkersThatDidNotCome) {
  Use(Spec());
  Sync();
  const Identity ada = Join();

  Pass(absl::Seconds(60), {ada});
  now_ += absl::Milliseconds(1);
  coordinator().Tick(now_);

  EXPECT_EQ(coordinator().failure(), "1 of 2 workers came within 1m00s; missing: workers 1");
  EXPECT_EQ(coordinator().AskModel(ada).status().code(), absl::StatusCode::kAborted);
}

TEST_F(CoordinatorTest, WaitsForAWorkerToComeBackAndThenFails) {
  Train(Spec());

  Pass(absl::Seconds(50), {});
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  const auto back = coordinator().OnRegister({.worker = WorkerId{0}}, now_);
  ASSERT_TRUE(back.ok());
  Pass(absl::Seconds(60), {*back});
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  Pass(absl::Seconds(70), {});

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_EQ(coordinator().failure().find("all workers are gone"), 0u) << coordinator().failure();
  EXPECT_TRUE(coordinator().orders().may_exit);
}

TEST_F(CoordinatorTest, FailsWhenAServerIsSilentForTooLong) {
  Train(Spec());

  for (int second = 0; second < 61; ++second) {
    now_ += absl::Seconds(1);
    SyncOne(0);
    ASSERT_TRUE(coordinator().OnHeartbeat(ada_, {}, now_).ok());
    coordinator().Tick(now_);
  }

  EXPECT_EQ(coordinator().failure(), "the server of shard 1 has not been heard for 1m00s");
}

TEST_F(CoordinatorTest, ARestartedServerEndsARunThatTrains) {
  Train(Spec());
  ServerReport report;
  report.shard = ShardId{1};
  report.instance = 99;
  report.address = "b:2";
  EXPECT_EQ(coordinator().OnServer(report, now_).code(), absl::StatusCode::kAlreadyExists)
      << "the first one was heard just now";

  now_ += absl::Seconds(6);
  ASSERT_TRUE(coordinator().OnServer(report, now_).ok());

  EXPECT_EQ(coordinator().failure(),
            "the server of shard 1 was restarted; its weights are lost, as the run keeps no "
            "checkpoints (durability.level)");
}

TEST_F(CoordinatorTest, RefusesAServerThatFollowsAnotherRun) {
  Use(Spec());
  ServerReport report;
  report.address = "a:1";
  report.orders_seen = coordinator().orders().number + 1;

  EXPECT_EQ(coordinator().OnServer(report, now_).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorTest, AServerRestartedWhileInitializingStartsInitializationOver) {
  Use(Spec());
  Sync();
  const Identity ada = Join();
  Join();
  ASSERT_EQ(Prepare(ada), PreparationState::kGranted);
  ASSERT_EQ(coordinator().orders().grant, 1u);

  now_ += absl::Seconds(6);
  instance_[1] = 99;
  SyncOne(1);

  EXPECT_FALSE(coordinator().OnFinishInitialization(ada, 1, now_).ok());
  ASSERT_EQ(Prepare(ada), PreparationState::kGranted);
  EXPECT_EQ(coordinator().orders().grant, 2u);
}

TEST_F(CoordinatorTest, OrdersChangeOnlyWithTheirNumber) {
  Train(Spec());
  const ServerOrders before = coordinator().orders();

  Sync();
  ASSERT_TRUE(coordinator().OnHeartbeat(ada_, {}, now_).ok());
  coordinator().Tick(now_);
  EXPECT_EQ(coordinator().orders(), before);

  Join();
  EXPECT_GT(coordinator().orders().number, before.number);
}

TEST_F(CoordinatorTest, ACoordinatorThatStoodStillTakesNobodyForDead) {
  Train(Spec());
  coordinator().Tick(now_);

  // The time is longer than all leases and timeouts together.
  now_ += absl::Hours(1);
  coordinator().Tick(now_);

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_EQ(coordinator().membership().live(), 2u);
  EXPECT_EQ(CountNotes("extended seconds=3600"), 1);
  Pass(absl::Seconds(4), {ada_});
  EXPECT_EQ(coordinator().membership().live(), 2u);
  Pass(absl::Seconds(2), {ada_});
  EXPECT_EQ(coordinator().membership().live(), 1u) << "who is silent from then on dies as usual";
}

TEST_F(CoordinatorTest, TheFirstCallAfterAStandstillIsNoDeathSentenceForTheOthers) {
  Train(Spec());
  coordinator().Tick(now_);

  now_ += absl::Minutes(10);
  coordinator().Observe(now_);
  ASSERT_TRUE(coordinator().OnHeartbeat(ada_, {}, now_).ok());
  coordinator().Tick(now_);

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  EXPECT_TRUE(coordinator().OnHeartbeat(bob_, {}, now_).ok());
}

TEST_F(CoordinatorTest, NobodyDiesWhileAllWaitForAnswersThatAreHeldBack) {
  Train(Spec());
  coordinator().HoldAnswers(true);
  Pass(absl::Seconds(20), {});
  EXPECT_EQ(coordinator().membership().live(), 2u);
  EXPECT_FALSE(coordinator().Missing(now_).has_value());

  coordinator().HoldAnswers(false);
  Pass(absl::Seconds(6), {ada_});
  EXPECT_EQ(coordinator().membership().live(), 1u) << "from then on leases end as usual";
}

TEST_F(CoordinatorTest, ARegistrationWhoseAnswerWasLostLeavesNoGhost) {
  Use(Spec());
  Sync();
  const auto first = coordinator().OnRegister({.instance = 5}, now_);
  const auto again = coordinator().OnRegister({.instance = 5}, now_);

  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(coordinator().phase(), Phase::kWaitingForWorkers) << "one worker of two";
}

TEST_F(CoordinatorTest, FailsWithTheReasonOfAServerThatCannotGoOn) {
  Use(Spec());
  Sync();
  Join();
  Join();
  ServerReport report;
  report.shard = ShardId{1};
  report.instance = instance_[1];
  report.address = "host:1";
  report.failure = "the model is too large";

  ASSERT_TRUE(coordinator().OnServer(report, now_).ok());

  EXPECT_EQ(coordinator().failure(), "the server of shard 1 cannot go on: the model is too large");
}

TEST_F(CoordinatorTest, WhatAWorkerHasDoneUntilItLeavesIsNotHandedOutAgain) {
  RunSpec spec = Spec();
  spec.training.batch_size = 1;
  Train(spec);
  ASSERT_EQ(Ask(bob_), WorkState::kUnit);
  const WorkLedger::Unit unit = last_unit_;
  ASSERT_GT(unit.batches, 3u);
  // No shard has reported this worker's pushes yet.
  const UnitReport too_much{unit.number, unit.batches + 1};
  const UnitReport done{unit.number, 3};

  EXPECT_EQ(coordinator().OnLeave(bob_, "", now_, false, {&too_much, 1}).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_, false, {&done, 1}).ok());

  EXPECT_EQ(coordinator().batches_done(), 3u);
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  EXPECT_EQ(last_unit_.first, unit.first + 3);
}

TEST_F(CoordinatorTest, WhatADeadWorkerHasPushedIsNotHandedOutAgain) {
  RunSpec spec = Spec();
  spec.training.batch_size = 1;
  Train(spec);
  ASSERT_EQ(Ask(bob_), WorkState::kUnit);
  const WorkLedger::Unit unit = last_unit_;
  ASSERT_GT(unit.batches, 3u);
  // Bob reported one mini-batch as done, but has pushed three.
  const UnitReport told{unit.number, 1};
  ASSERT_TRUE(coordinator().OnHeartbeat(bob_, {&told, 1}, now_).ok());
  pushed_ = {{bob_.worker, bob_.incarnation, unit.first + 3}};
  Sync();

  Pass(absl::Seconds(6), {ada_});

  ASSERT_FALSE(coordinator().membership().IsLive(bob_.worker));
  EXPECT_EQ(coordinator().batches_done(), 3u);
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  EXPECT_EQ(last_unit_.first, unit.first + 3);
}

TEST_F(CoordinatorTest, TheNewestPushIsThatOfTheLatestClockWhereAnotherWorkersUnitFollowed) {
  RunSpec spec = Spec();
  spec.training.batch_size = 1;
  Train(spec);
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  const WorkLedger::Unit of_ada = last_unit_;
  ASSERT_EQ(Ask(bob_), WorkState::kUnit);
  const WorkLedger::Unit of_bob = last_unit_;
  ASSERT_GT(of_bob.first, of_ada.first);
  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_, false, {}).ok());
  ASSERT_EQ(Ask(bob_), WorkState::kUnit);
  ASSERT_EQ(last_unit_.first, of_ada.first) << "what she gave back comes second, and lies before";
  // One shard has Bob's first push of Ada's unit. The other has only the pushes of his own unit.
  const uint64_t behind = of_bob.first + of_bob.batches;
  pushed_ = {{bob_.worker, bob_.incarnation, behind, WorkerClock{of_bob.batches}},
             {bob_.worker, bob_.incarnation, of_ada.first + 1, WorkerClock{of_bob.batches + 1}}};
  Sync();

  Pass(absl::Seconds(6), {});

  ASSERT_FALSE(coordinator().membership().IsLive(bob_.worker));
  EXPECT_EQ(coordinator().batches_done(), of_bob.batches + 1);
}

}  // namespace
}  // namespace slipstream
