#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/core/coordinator/generations_fixture.h"

// Tests of a coordinator that writes its state down, ends, and goes on from it.

namespace slipstream {
namespace {

class CoordinatorJournalTest : public CoordinatorGenerationsTest {
 protected:
  /// Returns a coordinator that goes on from what this one has written down.
  std::unique_ptr<Coordinator> Copy(const RunSpec& spec) {
    auto copy = std::make_unique<Coordinator>(kRun, spec, now_);
    const absl::Status restored = copy->Restore(coordinator().Save(), now_);
    EXPECT_TRUE(restored.ok()) << restored;
    return copy;
  }

  /// The coordinator's process, which is shard 0's, ends and begins anew.
  void RestartCoordinator(const RunSpec& spec) {
    const std::string bytes = coordinator().Save();
    Use(spec);
    const absl::Status restored = coordinator().Restore(bytes, now_);
    ASSERT_TRUE(restored.ok()) << restored;
    BeginProcess(0);
  }

  /// Does something that members of a run may do.
  void DoSomething(std::mt19937_64& random) {
    const Identity& worker = random() % 2 == 0 ? ada_ : bob_;
    const uint32_t shard = random() % 2;
    switch (random() % 8) {
      case 0:
        now_ += absl::Milliseconds(random() % 500);
        coordinator().Tick(now_);
        break;
      case 1:
      case 2:
        reports_[shard].version = Next(reports_[shard].version);
        reports_[shard].batches_of_rounds += shard == 0 ? 1 : 0;
        reports_[shard].pushed = {{.worker = worker.worker,
                                   .incarnation = worker.incarnation,
                                   .batch_end = random() % 8,
                                   .clock = WorkerClock{random() % 8}}};
        Report(shard);
        break;
      case 3:
        reports_[shard].saved.push_back(Saved(Value(reports_[shard].version)));
        if (reports_[shard].saved.size() > 3) {
          reports_[shard].saved.erase(reports_[shard].saved.begin());
        }
        Report(shard);
        break;
      case 4:
      case 5:
        if (const auto work = coordinator().AskWork(worker, {.newest_unit = 0});
            work.ok() && work->state == WorkState::kUnit) {
          const UnitReport done{work->unit.number, random() % work->unit.batches + 1};
          EXPECT_TRUE(coordinator().OnHeartbeat(worker, {&done, 1}, now_).ok());
        }
        break;
      case 6:
        if (const auto order = coordinator().EvaluationFor(worker.worker)) {
          EXPECT_TRUE(coordinator().OnReport(worker, order->number, {}, kHash, now_).ok());
        }
        break;
      case 7:
        if (random() % 8 == 0) {
          EXPECT_TRUE(coordinator().OnLeave(worker, "gone", now_).ok());
          Identity& place = worker == ada_ ? ada_ : bob_;
          place = *coordinator().OnRegister({.worker = place.worker, .host = "host"}, now_);
        }
        break;
    }
  }
};

TEST_F(CoordinatorJournalTest, AnOlderStateThanTheServersKnowIsRefusedUnlessItIsAccepted) {
  const RunSpec spec = Durable();
  TrainDurably(spec);
  const std::string older = coordinator().Save();
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  Report(1);
  reports_[1].run = kRun;
  for (const bool accepts : {false, true}) {
    Coordinator restored(kRun, spec, now_);
    ASSERT_TRUE(restored.Restore(older, now_, accepts).ok());
    EXPECT_TRUE(restored.rollback().ok());
    const uint64_t number = restored.orders().number;
    restored.Tick(now_ + absl::Milliseconds(20));
    EXPECT_EQ(restored.orders().number, number) << "nobody could tell these from the newer ones";
    EXPECT_TRUE(absl::IsUnavailable(restored.OnRegister({.host = "host"}, now_).status()));

    ++reports_[1].number;
    const absl::Status taken = restored.OnServer(reports_[1], now_);

    EXPECT_EQ(taken.code(), accepts ? absl::StatusCode::kOk : absl::StatusCode::kUnavailable);
    EXPECT_EQ(restored.rollback().code(),
              accepts ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss);
    if (!accepts) continue;
    ++reports_[0].number;
    ASSERT_TRUE(restored.OnServer(reports_[0], now_).ok());
    restored.Tick(now_);
    EXPECT_GT(restored.orders().number, reports_[1].orders_seen) << "servers heed these";
    EXPECT_GT(Value(restored.orders().view.number), Value(coordinator().orders().view.number));
    EXPECT_GT(Value(restored.OnRegister({.host = "host"}, now_)->incarnation),
              Value(bob_.incarnation));
  }
}

TEST_F(CoordinatorJournalTest, ARestoredCoordinatorIsTheSameAtAnyMoment) {
  for (const Policy policy : {Policy::kSoftsync, Policy::kHardsync}) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      std::mt19937_64 random(seed);
      RunSpec spec = Durable(policy);
      spec.training.epochs = 20;
      spec.evaluation.every_epochs = 1;
      spec.durability.interval = absl::Seconds(1);
      initialized_ = false;
      TrainDurably(spec);
      for (int step = 0; step < 60; ++step) {
        DoSomething(random);
        const std::string bytes = coordinator().Save();

        const auto copy = Copy(spec);

        ASSERT_EQ(copy->Save(), bytes);
        ASSERT_EQ(copy->orders(), coordinator().orders());
        ASSERT_EQ(copy->batches_done(), coordinator().batches_done());
        ASSERT_EQ(copy->phase(), coordinator().phase());
        ASSERT_EQ(copy->stages(), coordinator().stages());
        for (const ServerReport& report : reports_) ASSERT_TRUE(copy->OnServer(report, now_).ok());
        const auto here = coordinator().AskWork(ada_, {});
        const auto there = copy->AskWork(ada_, {});
        ASSERT_EQ(here->state, there->state);
        ASSERT_EQ(here->unit, there->unit);
      }
    }
  }
}

TEST_F(CoordinatorJournalTest, EveryPhaseBeforeTrainingSurvivesToo) {
  const RunSpec spec = Durable();
  Use(spec);
  const auto is_same = [&] { return Copy(spec)->Save() == coordinator().Save(); };
  EXPECT_TRUE(is_same());
  Sync();
  ada_ = Join();
  EXPECT_TRUE(is_same());
  bob_ = Join();
  EXPECT_EQ(Prepare(bob_), PreparationState::kGranted);
  EXPECT_TRUE(is_same());
  EXPECT_EQ(Copy(spec)->AskModel(bob_)->state, PreparationState::kGranted);
  EXPECT_EQ(Copy(spec)->orders().model, coordinator().orders().model);
}

TEST_F(CoordinatorJournalTest, TheTimeOfTrainingGoesOnWithoutTheTimeBetween) {
  const RunSpec spec = Durable();
  TrainDurably(spec);
  now_ += absl::Seconds(1);
  coordinator().Tick(now_);
  const std::string bytes = coordinator().Save();
  now_ += absl::Hours(1);

  Coordinator restored(kRun, spec, now_);
  ASSERT_TRUE(restored.Restore(bytes, now_).ok());

  EXPECT_EQ(restored.TrainingTime(now_ + absl::Seconds(2)), absl::Seconds(3));
  restored.Tick(now_ + absl::Seconds(1));
  EXPECT_EQ(restored.membership().live(), 2u) << "leases begin anew";
}

TEST_F(CoordinatorJournalTest, DamagedBytesAreRefused) {
  const RunSpec spec = Durable();
  TrainDurably(spec);
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  const std::string bytes = coordinator().Save();

  // Where the bytes end between two fields, the rest has its defaults, as from an older release.
  // The checksum of the file tells such damage.
  size_t taken = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    Coordinator restored(kRun, spec, now_);
    const absl::Status status = restored.Restore(bytes.substr(0, size), now_);
    if (status.ok()) ++taken;
    ASSERT_TRUE(status.ok() || absl::IsDataLoss(status)) << size << ": " << status;
  }
  EXPECT_LT(taken, 30u);
  Coordinator longer(kRun, spec, now_);
  EXPECT_TRUE(absl::IsDataLoss(longer.Restore(bytes + "x", now_)));
  Coordinator other(kRun + 1, spec, now_);
  EXPECT_TRUE(absl::IsFailedPrecondition(other.Restore(bytes, now_)));
}

TEST_F(CoordinatorJournalTest, TellsOfWhichRunTheBytesAre) {
  TrainDurably(Durable());

  absl::StatusOr<SavedRun> saved = PeekAtRun(coordinator().Save());
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved->run, kRun);
  EXPECT_EQ(saved->phase, Phase::kTraining);
  EXPECT_FALSE(saved->is_over);

  ASSERT_TRUE(coordinator().OnLeave(ada_, "no finite numbers", now_, true).ok());
  saved = PeekAtRun(coordinator().Save());
  EXPECT_TRUE(saved->is_over);
  EXPECT_TRUE(absl::IsDataLoss(PeekAtRun("").status()));
}

TEST_F(CoordinatorJournalTest, TheServerThatEndedWithTheCoordinatorIsReplacedAtOnce) {
  const RunSpec spec = Durable();
  TrainDurably(spec);
  Reach(50, {Saved(40)});
  RestartCoordinator(spec);

  ASSERT_NO_FATAL_FAILURE(Send(0));
  NameCheckpoints(0);

  EXPECT_EQ(OrderOf(0), ShardReturn()) << "the state may be an older copy";
  Report(1);  // The process that it knew.
  EXPECT_EQ(CountNotes("server replaced shard=1"), 0);
  Report(0);
  EXPECT_EQ(OrderOf(0), (ShardReturn{.generation = Generation{1}, .from = Saved(40)}));
  EXPECT_EQ(OrderOf(1), ShardReturn());
  ServerReport other = reports_[1];
  other.instance += 1;
  EXPECT_TRUE(absl::IsAlreadyExists(coordinator().OnServer(other, now_)));
}

TEST_F(CoordinatorJournalTest, InStepTheReturnWaitsForWhatTheOtherShardsHaveNow) {
  const RunSpec spec = Durable(Policy::kHardsync);
  TrainDurably(spec);
  Reach(50, {Saved(20), Saved(40)});
  RestartCoordinator(spec);
  Send(0);
  NameCheckpoints(0);
  EXPECT_EQ(OrderOf(0), ShardReturn());

  reports_[1].saved.pop_back();
  Report(1);

  EXPECT_EQ(OrderOf(0), (ShardReturn{.generation = Generation{1}, .from = Saved(20)}));
  EXPECT_EQ(OrderOf(1), OrderOf(0));
}

TEST_F(CoordinatorJournalTest, WorkersGoOnUnderTheirIncarnations) {
  const RunSpec spec = Durable();
  TrainDurably(spec);
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  const WorkLedger::Unit unit = last_unit_;

  RestartCoordinator(spec);

  const UnitReport done{unit.number, unit.batches};
  EXPECT_TRUE(coordinator().OnHeartbeat(ada_, {&done, 1}, now_).ok());
  EXPECT_EQ(coordinator().batches_done(), unit.batches);
  Report(0);
  Report(1);
  const auto newcomer = coordinator().OnRegister({.worker = WorkerId{2}, .host = "host"}, now_);
  ASSERT_TRUE(newcomer.ok());
  EXPECT_GT(newcomer->incarnation, bob_.incarnation);
}

TEST_F(CoordinatorJournalTest, WhatOthersLearnOfIsCountedAndProgressAloneIsNot) {
  TrainDurably(Durable());
  uint64_t before = coordinator().journal_changes();
  const auto has_changed = [&] {
    return std::exchange(before, coordinator().journal_changes()) != before;
  };

  EXPECT_TRUE(coordinator().OnHeartbeat(ada_, {}, now_).ok());
  Report(0);
  EXPECT_FALSE(has_changed());
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  EXPECT_TRUE(has_changed()) << "a unit";
  const UnitReport done{last_unit_.number, last_unit_.batches};
  EXPECT_TRUE(coordinator().OnHeartbeat(ada_, {&done, 1}, now_).ok());
  EXPECT_FALSE(has_changed());
  ASSERT_TRUE(coordinator().OnRegister({.worker = WorkerId{2}, .host = "host"}, now_).ok());
  EXPECT_TRUE(has_changed()) << "an incarnation";
  ASSERT_EQ(Ask(bob_), WorkState::kUnit);
  EXPECT_TRUE(has_changed());
  ASSERT_TRUE(coordinator().OnDonePushing(bob_, now_).ok());
  EXPECT_TRUE(has_changed()) << "work that was given back, which the worker says once";
  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());
  EXPECT_TRUE(has_changed()) << "the end of work";
}

}  // namespace
}  // namespace slipstream
