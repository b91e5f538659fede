#include "server/core/coordinator/work_ledger.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "common/base/philox.h"

namespace slipstream {
namespace {

constexpr WorkerId kAda{0};
constexpr WorkerId kBob{1};

using Unit = WorkLedger::Unit;

TEST(WorkLedgerTest, UnitsShrinkTowardsTheEndOfAnEpoch) {
  WorkLedger ledger(40, 40);
  std::vector<uint64_t> sizes;

  while (const std::optional<Unit> unit = ledger.HandOut(kAda, 2)) {
    sizes.push_back(unit->batches);
    ASSERT_TRUE(ledger.Report(kAda, unit->number, unit->batches).ok());
  }

  EXPECT_EQ(sizes, (std::vector<uint64_t>{10, 7, 5, 4, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(ledger.AllDone());
}

TEST(WorkLedgerTest, AUnitNeverCrossesTheEndOfAnEpoch) {
  WorkLedger ledger(9, 3);
  std::vector<uint64_t> firsts;

  while (std::optional<Unit> unit = ledger.HandOut(kAda, 1)) {
    EXPECT_EQ(unit->first / 3, (unit->first + unit->batches - 1) / 3);
    firsts.push_back(unit->first);
    ASSERT_TRUE(ledger.Report(kAda, unit->number, unit->batches).ok());
  }

  EXPECT_EQ(firsts, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(ledger.epochs_done(), 3u);
}

TEST(WorkLedgerTest, AWorkerHoldsAUnitForEachPushUnderWayAndTwoMore) {
  for (const uint32_t in_flight : {1u, 2u}) {
    WorkLedger ledger(100, 100, {.in_flight = in_flight});
    const Unit oldest = *ledger.HandOut(kAda, 2);
    for (uint32_t i = 0; i <= in_flight; ++i) EXPECT_TRUE(ledger.HandOut(kAda, 2).has_value());

    EXPECT_FALSE(ledger.HandOut(kAda, 2).has_value());
    ASSERT_TRUE(ledger.Report(kAda, oldest.number, oldest.batches).ok());
    EXPECT_TRUE(ledger.HandOut(kAda, 2).has_value());
  }
}

TEST(WorkLedgerTest, AWorkerGetsWhatItDoesWhileItAsksButNoMoreThanItsShare) {
  constexpr uint64_t kPerEpoch = 40;
  WorkLedger ledger(2 * kPerEpoch, kPerEpoch);
  const auto size_of_next = [&ledger](uint64_t wanted) {
    const Unit unit = *ledger.HandOut(kAda, 4, wanted);
    EXPECT_TRUE(ledger.Report(kAda, unit.number, unit.batches).ok());
    return unit.batches;
  };

  // λ = 4: an epoch's first unit, per_epoch / 2λ, has 5, and so may all others of the first epoch.
  while (ledger.done() < kPerEpoch) EXPECT_EQ(size_of_next(100), 5u);
  EXPECT_EQ(size_of_next(2), 5u);  // 40 / 8 are more.
  while (ledger.done() < 2 * kPerEpoch - 13) size_of_next(1);
  EXPECT_EQ(size_of_next(2), 2u);    // Of 13.
  EXPECT_EQ(size_of_next(100), 2u);  // Of 11: more than its share would make the others wait.
  EXPECT_EQ(ledger.HandOut(kAda, 4, 100)->batches, 2u);  // Of 9,
  EXPECT_EQ(ledger.HandOut(kAda, 4, 100)->batches, 1u);  // and it has its share.
}

TEST(WorkLedgerTest, TheUnfinishedPartOfADeadWorkersUnitsIsHandedOutFirst) {
  WorkLedger ledger(40, 40);
  const Unit unit = *ledger.HandOut(kAda, 2);
  ASSERT_EQ(unit, (Unit{1, 0, 10}));
  ASSERT_TRUE(ledger.Report(kAda, unit.number, 4).ok());

  ledger.Release(kAda);

  EXPECT_EQ(*ledger.HandOut(kBob, 1), (Unit{2, 4, 6}));
  EXPECT_EQ(ledger.done(), 4u);
}

TEST(WorkLedgerTest, RepeatedOldAndForeignReportsHaveNoEffect) {
  WorkLedger ledger(40, 40);
  const Unit unit = *ledger.HandOut(kAda, 2);
  ASSERT_TRUE(ledger.Report(kAda, unit.number, 5).ok());

  EXPECT_TRUE(ledger.Report(kAda, unit.number, 5).ok());
  EXPECT_TRUE(ledger.Report(kAda, unit.number, 3).ok());
  EXPECT_TRUE(ledger.Report(kBob, unit.number, 9).ok());
  EXPECT_TRUE(ledger.Report(kAda, 99, 1).ok());

  EXPECT_EQ(ledger.done(), 5u);
}

TEST(WorkLedgerTest, RefusesMoreThanTheUnitHas) {
  WorkLedger ledger(40, 40);
  const Unit unit = *ledger.HandOut(kAda, 2);

  EXPECT_EQ(ledger.Report(kAda, unit.number, 11).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ledger.done(), 0u);
}

TEST(WorkLedgerTest, FindsAUnitWhoseAnswerWasLost) {
  WorkLedger ledger(40, 40);
  const Unit first = *ledger.HandOut(kAda, 2);
  const Unit second = *ledger.HandOut(kAda, 2);

  EXPECT_EQ(ledger.FindNewer(kAda, 0), first);
  EXPECT_EQ(ledger.FindNewer(kAda, first.number), second);
  EXPECT_FALSE(ledger.FindNewer(kAda, second.number).has_value());
  EXPECT_FALSE(ledger.FindNewer(kBob, 0).has_value());
}

TEST(WorkLedgerTest, AnEpochIsDoneWhenAllBeforeItAre) {
  WorkLedger ledger(2, 1);
  const Unit first = *ledger.HandOut(kAda, 1);
  const Unit second = *ledger.HandOut(kAda, 1);

  ASSERT_TRUE(ledger.Report(kAda, second.number, 1).ok());
  EXPECT_EQ(ledger.epochs_done(), 0u);
  ASSERT_TRUE(ledger.Report(kAda, first.number, 1).ok());
  EXPECT_EQ(ledger.epochs_done(), 2u);
}

/// A naive model: the owner of each mini-batch, and whether it is done.
struct Batches {
  explicit Batches(uint64_t total) : owners(total, -1), done(total, 0) {}

  void Take(int worker, const Unit& unit) {
    for (uint64_t i = unit.first; i < unit.first + unit.batches; ++i) {
      ASSERT_EQ(owners.at(i), -1) << "mini-batch " << i << " has two owners";
      ASSERT_EQ(done.at(i), 0) << "mini-batch " << i << " is handed out after it was done";
      owners[i] = worker;
    }
  }

  void Finish(uint64_t i) {
    owners[i] = -1;
    ++done[i];
  }

  std::vector<int> owners;
  std::vector<int> done;
};

struct Holding {
  Unit unit;
  uint64_t finished = 0;
};

TEST(WorkLedgerTest, EveryMiniBatchIsDoneExactlyOnceUnderRandomDeaths) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    const uint64_t per_epoch = 1 + random.Below(60);
    const uint64_t total = per_epoch * (1 + random.Below(4));
    const uint32_t workers = 1 + random.Below(6);
    WorkLedger ledger(total, per_epoch, {.in_flight = 1 + random.Below(2)});
    Batches batches(total);
    std::map<uint32_t, std::vector<Holding>> held;

    int steps = 0;
    while (!ledger.AllDone()) {
      ASSERT_LT(++steps, 100'000);
      const uint32_t id = random.Below(workers);
      std::vector<Holding>& mine = held[id];
      const uint32_t what = random.Below(20);
      if (what == 0) {
        ledger.Release(WorkerId{id});
        for (const Holding& holding : mine) {
          for (uint64_t i = holding.finished; i < holding.unit.batches; ++i) {
            batches.owners[holding.unit.first + i] = -1;
          }
        }
        mine.clear();
      } else if (what < 8) {
        if (std::optional<Unit> unit = ledger.HandOut(WorkerId{id}, workers, 1 + random.Below(9))) {
          ASSERT_EQ(unit->first / per_epoch, (unit->first + unit->batches - 1) / per_epoch);
          ASSERT_NO_FATAL_FAILURE(batches.Take(static_cast<int>(id), *unit));
          mine.push_back({*unit});
          ASSERT_LE(mine.size(), ledger.units_max());
        }
      } else if (!mine.empty()) {
        Holding& holding = mine.front();
        const uint64_t left = holding.unit.batches - holding.finished;
        const uint64_t some = 1 + random.Below(static_cast<uint32_t>(left));
        for (uint64_t i = 0; i < some; ++i) {
          batches.Finish(holding.unit.first + holding.finished++);
        }
        ASSERT_TRUE(ledger.Report(WorkerId{id}, holding.unit.number, holding.finished).ok());
        if (holding.finished == holding.unit.batches) mine.erase(mine.begin());
      }
    }

    EXPECT_EQ(batches.done, std::vector<int>(total, 1));
    EXPECT_EQ(ledger.epochs_done(), total / per_epoch);
    EXPECT_TRUE(ledger.AllDone());
  }
}

TEST(WorkLedgerTest, ATotalWithinAnEpochIsHandedOutToTheLast) {
  for (uint64_t total = 1; total <= 12; ++total) {
    SCOPED_TRACE(testing::Message() << "total " << total);
    WorkLedger ledger(total, 5);
    uint64_t next = 0;

    while (std::optional<Unit> unit = ledger.HandOut(kAda, 1)) {
      EXPECT_EQ(unit->first, next);
      next += unit->batches;
      ASSERT_TRUE(ledger.Report(kAda, unit->number, unit->batches).ok());
    }

    EXPECT_EQ(next, total);
    EXPECT_TRUE(ledger.AllDone());
    EXPECT_EQ(ledger.epochs_done(), total / 5);
  }
}

TEST(WorkLedgerTest, AClosedLedgerIsDoneWhenNobodyHoldsAnything) {
  WorkLedger ledger(40, 40);
  const Unit of_ada = *ledger.HandOut(kAda, 2);
  const Unit of_bob = *ledger.HandOut(kBob, 2);

  ledger.Close();

  EXPECT_FALSE(ledger.HandOut(kAda, 2).has_value());
  EXPECT_FALSE(ledger.AllDone());
  ASSERT_TRUE(ledger.Report(kAda, of_ada.number, of_ada.batches).ok());
  EXPECT_FALSE(ledger.AllDone());
  ASSERT_TRUE(ledger.Report(kBob, of_bob.number, 1).ok());
  EXPECT_TRUE(ledger.Release(kBob));
  EXPECT_TRUE(ledger.AllDone());
  EXPECT_EQ(ledger.done(), of_ada.batches + 1);
  EXPECT_FALSE(ledger.Release(kBob));
}

TEST(WorkLedgerTest, WhatWasDoneWithoutAReportIsFoundByItsLastMiniBatch) {
  WorkLedger ledger(40, 40);
  const Unit first = *ledger.HandOut(kAda, 2);   // 0 to 9
  const Unit second = *ledger.HandOut(kAda, 2);  // 10 to 16
  ASSERT_EQ(first.batches + second.batches, 17u);

  ledger.ReportUpTo(kAda, 4);
  EXPECT_EQ(ledger.done(), 4u);
  ledger.ReportUpTo(kAda, 3);
  EXPECT_EQ(ledger.done(), 4u) << "older news";
  ledger.ReportUpTo(kAda, 12);
  EXPECT_EQ(ledger.done(), 12u) << "the first unit comes before the second";
  ledger.ReportUpTo(kAda, 30);
  ledger.ReportUpTo(kAda, 0);
  ledger.ReportUpTo(kBob, 12);
  EXPECT_EQ(ledger.done(), 12u) << "not its own";

  ledger.Release(kAda);
  EXPECT_EQ(*ledger.HandOut(kBob, 1), (Unit{3, 12, 5}));
}

TEST(WorkLedgerTest, UnitsAreMultiplesOfWhatAPushStandsFor) {
  WorkLedger ledger(42, 42, {.batches = 8});
  uint64_t handed_out = 0;
  for (const WorkerId worker : {kAda, kBob, kAda, kBob}) {
    const Unit unit = *ledger.HandOut(worker, 2);
    handed_out += unit.batches;
    EXPECT_EQ(unit.batches % 8, 0u) << unit.first;
    ASSERT_TRUE(ledger.Report(worker, unit.number, unit.batches).ok());
  }
  EXPECT_EQ(handed_out, 40u);
  EXPECT_EQ(ledger.HandOut(kAda, 2)->batches, 2u) << "what is left of the epoch";
}

}  // namespace
}  // namespace slipstream
