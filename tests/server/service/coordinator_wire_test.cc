#include "server/service/coordinator_wire.h"

#include <gtest/gtest.h>

#include "tests/support/shard_machine_driver.h"

namespace slipstream {
namespace {

TEST(CoordinatorWireTest, CarriesTheNewestPushOfAMemberThoughItWasDropped) {
  ConsistencySpec consistency = {.policy = ConsistencySpec::Policy::kAsync};
  consistency.max_staleness.action = StalenessGuardSpec::Action::kDrop;
  ShardMachineDriver driver(TestOptions(consistency));
  driver.Start(FoundingView(3));
  driver.Push(PushOf(0, 1, 0));
  ShardMachine::PushFacts stale = PushOf(1, 1, 0);
  stale.header.batches = {{41}};
  stale.header.clock = WorkerClock{7};
  ASSERT_EQ(driver.Push(stale).reply.outcome, PushOutcome::kDroppedLate);

  v1::SyncServerRequest wire;
  *wire.mutable_progress() = ProgressOf(driver.core());
  const ServerReport report = FromWire(wire);

  EXPECT_EQ(report.version, driver.core().published());
  ASSERT_EQ(report.pushed.size(), 1u) << "the others have pushed no mini-batch";
  EXPECT_EQ(report.pushed[0].worker, WorkerId{1});
  EXPECT_EQ(report.pushed[0].incarnation, Incarnation{2});
  EXPECT_EQ(report.pushed[0].batch_end, 42u);
  EXPECT_EQ(report.pushed[0].clock, WorkerClock{7});
}

}  // namespace
}  // namespace slipstream
