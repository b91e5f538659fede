// Property tests of the parts of a run's state that have no tests of their own elsewhere.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/archive.h"
#include "common/base/philox.h"
#include "server/core/coordinator/coordinator.h"
#include "server/core/coordinator/notes.h"
#include "server/core/coordinator/rollback_guard.h"
#include "server/core/coordinator/run_phase.h"
#include "server/core/coordinator/run_work.h"
#include "server/core/coordinator/stages.h"
#include "server/core/coordinator/worker_supply.h"
#include "tests/server/core/coordinator/coordinator_fixture.h"

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

constexpr uint64_t kSeeds = 200;

/// Returns what goes on from the bytes of `part`.
template <typename T>
T Reread(const T& part, T fresh) {
  ArchiveWriter writer;
  writer(part);
  const std::string bytes = writer.Take();
  ArchiveReader reader(bytes);
  reader(fresh);
  EXPECT_TRUE(reader.is_complete());
  return fresh;
}

TEST(RunPhaseTest, OnlyAdvancesOrTrainsAgainAndCountsTheTimeOfTraining) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    absl::Time now = absl::UnixEpoch();
    RunPhase phase(now);
    absl::Duration trained;
    const auto wait = [&] {
      const absl::Duration time = absl::Milliseconds(random.Below(1000));
      const bool trains = phase.phase() == Phase::kTraining || phase.phase() == Phase::kDraining;
      if (trains) trained += time;
      now += time;
    };
    for (Phase next : {Phase::kWaitingForWorkers, Phase::kInitializing, Phase::kTraining,
                       Phase::kDraining, Phase::kEvaluating}) {
      wait();
      EXPECT_EQ(phase.RefuseBeforeTraining().ok(), phase.phase() >= Phase::kTraining);
      if (next == Phase::kTraining) phase.BeginTraining(now);
      phase.MoveTo(next, now);
      EXPECT_EQ(phase.since(), now);
      if (next > Phase::kTraining && random.Below(2) == 0) {
        wait();
        phase.TrainAgain(now);
        EXPECT_EQ(phase.phase(), Phase::kTraining);
        wait();
        phase.MoveTo(next, now);
      }
      EXPECT_EQ(phase.TrainingTime(now), trained);
    }
    RunPhase restored = Reread(phase, RunPhase(now));
    restored.OnRestored(phase.phase(), phase.Trained(now), now);
    EXPECT_EQ(restored.TrainingTime(now + absl::Seconds(9)), trained) << "what it has trained";
    phase.Fail("why", now);
    EXPECT_TRUE(phase.IsOver() && absl::IsAborted(phase.RefuseIfOver()));
  }
}

TEST(StagesTest, ThePresentAndEarlierOnesStayAsTheyAre) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    RunSpec spec = Spec(Policy::kAsync);
    spec.training.epochs = 9;
    Stages stages(spec);
    EXPECT_TRUE(stages.changed().empty());
    for (uint32_t epoch = 1; epoch < 8; ++epoch) {
      const std::vector<RunStage> before = stages.all();
      spec.optimizer.learning_rate = 0.01 + static_cast<double>(random.Below(3)) / 100;
      const RunChange change = {spec, /*sets_policy=*/false};
      const bool is_at_once = random.Below(2) == 0;
      if (!stages.Have(change)) {
        ASSERT_TRUE(stages.Change(change, is_at_once, epoch).ok());
        EXPECT_EQ(stages.changed(), stages.all());
        EXPECT_EQ(stages.next().begins_at_once, is_at_once);
      }
      for (uint32_t i = 0; i < stages.at(); ++i) EXPECT_EQ(stages.all()[i], before[i]);
      EXPECT_EQ(stages.present().consistency, before[stages.at()].consistency);
      EXPECT_EQ(stages.present().learning_rate, before[stages.at()].learning_rate);

      if (stages.at() + 1 == stages.all().size()) continue;
      const Version end{epoch};
      stages.EnterNext(end);
      const bool holds = stages.holds_work();
      EXPECT_EQ(holds, !stages.present().begins_at_once);
      EXPECT_FALSE(stages.is_open());
      EXPECT_LE(stages.Since(), stages.at());
      EXPECT_EQ(stages.Since() == stages.at(), !stages.present().begins_at_once);
      // Back to the version with which it began, and to no earlier one.
      const uint32_t last = stages.at() - 1;
      EXPECT_EQ(stages.CanGoOnFrom({.version = end, .stage = last}), holds);
      EXPECT_FALSE(stages.CanGoOnFrom({.version = Version{epoch + 100}, .stage = last}));
      EXPECT_TRUE(stages.CanGoOnFrom({.version = Version{1}, .stage = stages.at()}));
      stages.Open();
      EXPECT_TRUE(stages.is_open() && !stages.holds_work());
      EXPECT_EQ(Reread(stages, Stages(Spec(Policy::kAsync))).all(), stages.all());
    }
  }
}

TEST(RunWorkTest, EndsOnceAndNeverHasMoreDoneThanThereIs) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    const RunSpec spec = Spec(seed % 2 == 0 ? Policy::kAsync : Policy::kHardsync);
    Stages stages(spec);
    Membership members(kRun, absl::Seconds(5));
    RunWork work(spec);
    EXPECT_EQ(work.total(), 0u);
    const ModelOrders model = work.Plan({.layout = Layout(), .shard_map = {}, .data = kData});
    EXPECT_EQ(work.total(), model.batches_total);
    work.BeginStage(stages, members);
    uint64_t done = 0;
    while (!work.ends() && done < work.total()) {
      if (stages.works_in_rounds()) {
        EXPECT_FALSE(work.HandOut(WorkerId{0}, {}, stages, 1).has_value());
        work.TakeRounds(done + random.Below(3));
      } else if (const auto given = work.HandOut(WorkerId{0}, {}, stages, 1)) {
        const std::vector<UnitReport> report = {
            {given->unit.number, 1 + random.Below(static_cast<uint32_t>(given->unit.batches))}};
        ASSERT_TRUE(work.TakeReports(WorkerId{0}, report).ok());
        if (random.Below(2) == 0) work.Release(WorkerId{0});
      } else {
        work.Release(WorkerId{0});
      }
      EXPECT_GE(work.Done(stages), done);
      EXPECT_LE(work.Done(stages), work.total());
      EXPECT_LE(work.EpochsDone(stages), work.Done(stages) / work.per_epoch());
      done = work.Done(stages);
      if (random.Below(16) == 0) work.EndEarly(EndReason::kInterrupted);
    }
    const bool is_early = work.ends_early();
    work.EndComplete();
    EXPECT_TRUE(work.ends());
    EXPECT_EQ(work.end_reason() == EndReason::kInterrupted, is_early);
    EXPECT_EQ(Reread(work, RunWork(spec)).Done(stages), work.Done(stages));
    work.GoOn();
    EXPECT_EQ(work.ends(), is_early) << "what ended early stays at its end";
  }
}

TEST(RollbackGuardTest, AnOlderStateIsRefusedUnlessItIsAccepted) {
  ServerOrders orders;
  orders.run = kRun;
  orders.number = 7;
  RollbackGuard guard(/*keeps_log=*/true);
  ServerReport report;
  report.run = kRun;
  report.orders_seen = 7;
  EXPECT_EQ(*guard.OrdersBehind(report, orders), 0u);
  report.orders_seen = 9;
  EXPECT_TRUE(absl::IsUnavailable(guard.OrdersBehind(report, orders).status()));
  EXPECT_TRUE(absl::IsDataLoss(guard.found()));
  guard.Accept();
  EXPECT_EQ(*guard.OrdersBehind(report, orders), 2u);
  report.run = kRun + 1;
  EXPECT_TRUE(absl::IsFailedPrecondition(guard.OrdersBehind(report, orders).status()));
}

TEST(WorkerSupplyTest, LacksWorkersExactlyWhileFewerThanTheLeastLive) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    RunSpec spec = Spec(Policy::kAsync);
    spec.cluster.min_workers = 1 + static_cast<uint32_t>(random.Below(3));
    Membership members(kRun, absl::Hours(9));
    CoordinatorNotes notes;
    WorkerSupply supply(spec, members, notes);
    absl::Time now = absl::UnixEpoch();
    std::vector<Identity> live;
    std::optional<absl::Time> since;
    for (int event = 0; event < 40; ++event) {
      now += absl::Seconds(random.Below(30));
      if (random.Below(2) == 0) {
        const auto made = supply.Register({.instance = 1 + random.Below(1u << 30)}, now, 8, true);
        if (made.ok()) live.push_back({kRun, made->worker, made->incarnation});
      } else if (!live.empty()) {
        members.Leave(live.back(), "", now);
        live.pop_back();
      }
      const std::optional<std::string> why = supply.WhyNoTraining(spec.consistency, now);
      if (live.size() >= spec.cluster.min_workers) {
        since.reset();
      } else if (!since.has_value()) {
        since = now;
      }
      EXPECT_EQ(why.has_value(), since.has_value() && now - *since > supply.timeout());
      const std::optional<WorkerSupply::Lack> lack = supply.Lacking(/*trains=*/true);
      ASSERT_EQ(lack.has_value(), since.has_value());
      if (!lack.has_value()) continue;
      EXPECT_EQ(lack->workers, spec.cluster.min_workers - live.size());
      EXPECT_EQ(lack->since, *since);
    }
  }
}

TEST(CoordinatorNotesTest, ARefusalIsNotedOnceForEachProcessAndReasonAndAllIsBounded) {
  CoordinatorNotes notes;
  for (int i = 0; i < 3; ++i) {
    for (const uint64_t process : {1, 2}) {
      notes.AddRefusal("refused", process, {}, absl::InternalError(i == 0 ? "a" : "b"));
    }
  }
  EXPECT_EQ(notes.Take().size(), 4u);
  for (uint64_t i = 0; i < 30'000; ++i) notes.AddRefusal("refused", 3 + i, {}, absl::OkStatus());
  for (int i = 0; i < 30'000; ++i) notes.Add(EventKind::kNone, false, "note");
  EXPECT_LE(notes.Take().size(), 10'000u);
}

}  // namespace
}  // namespace slipstream
