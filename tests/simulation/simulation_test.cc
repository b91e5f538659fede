#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "server/core/coordinator/work_ledger.h"
#include "worker/core/unit_queue.h"

namespace slipstream {
namespace {

constexpr uint64_t kSeeds = 200;

TEST(SimulationTest, KeepsItsPromisesUnderFaults) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Simulated simulated = Simulate(seed);
    EXPECT_TRUE(simulated.findings.empty()) << Report(simulated);
  }
}

// A worker whose request has to wait idles until it reports its progress again. So it must get a
// unit at once whenever it wants one, as long as there is work, and be told of all it has done.
TEST(WorkTest, AWorkerGetsAUnitWheneverItWantsOne) {
  for (const uint32_t depth : {1u, 2u}) {
    for (uint64_t per_epoch = 1; per_epoch <= 20; ++per_epoch) {
      SCOPED_TRACE(testing::Message() << "depth " << depth << ", " << per_epoch << " an epoch");
      constexpr WorkerId kWorker{0};
      const uint64_t total = 3 * per_epoch;
      WorkLedger ledger(total, per_epoch, {.in_flight = depth});
      UnitQueue queue(depth);
      uint64_t given = 0;
      uint64_t under_way = 0;
      while (!ledger.AllDone()) {
        if (under_way == depth || given == total) {
          queue.Done();
          --under_way;
        }
        for (const UnitProgress& unit : queue.progress()) {
          ASSERT_TRUE(ledger.Report(kWorker, unit.id, unit.batches_done).ok());
        }
        if (given < total && queue.wanted() > 0) {
          const std::optional<WorkLedger::Unit> unit = ledger.HandOut(kWorker, 1, queue.wanted());
          ASSERT_TRUE(unit) << given << " of " << total << " handed out";
          queue.Add({unit->number, unit->first, unit->batches});
          given += unit->batches;
        }
        if (!queue.batches(under_way).empty()) ++under_way;
      }
    }
  }
}

}  // namespace
}  // namespace slipstream
