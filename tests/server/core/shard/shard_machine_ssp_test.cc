#include <gtest/gtest.h>

#include <variant>

#include "server/core/shard/shard_machine.h"
#include "tests/support/shard_machine_driver.h"

// Tests of pulls that wait for the clocks of other members.

namespace slipstream {
namespace {

using PushFacts = ShardMachine::PushFacts;

PushFacts ExchangeAt(uint32_t worker, uint64_t clock, uint64_t base) {
  PushFacts push = ExchangeOf(worker, clock, base);
  push.header.clock = WorkerClock{clock};
  return push;
}

PullRequest PullAt(uint32_t worker, uint64_t clock, uint64_t sequence = 1) {
  PullRequest request = TrainingPullOf(worker, 0, sequence);
  request.clock = WorkerClock{clock};
  return request;
}

PushFacts RestOf(uint32_t worker, uint64_t sequence) {
  PushFacts push = ExcuseOf(worker, sequence, 0);
  push.header.rests = true;
  return push;
}

/// Two workers that have pulled the initial weights. Either may be one push ahead of the other.
class SspTest : public testing::Test {
 protected:
  SspTest() : driver_(TestOptions(Spec())) {
    driver_.Start(FoundingView(2));
    driver_.Pull(PullAt(0, 0));
    driver_.Pull(PullAt(1, 0));
  }

  static ConsistencySpec Spec() {
    ConsistencySpec spec = {.policy = PolicyKind::kSsp};
    spec.parameters["slack"] = 1;
    return spec;
  }

  /// Worker 0 pushes, which brings its clock to `clock`, and the update is published. Returns
  /// whether a call waits.
  bool Waits(uint64_t clock) {
    const PushDecision decision = driver_.Push(ExchangeAt(0, clock, clock - 1));
    EXPECT_EQ(decision.reply.outcome, PushOutcome::kApplied);
    driver_.PublishAll();
    return !driver_.waiting().empty();
  }

  ShardMachineDriver driver_;
};

TEST_F(SspTest, WhoIsTooFarAheadWaitsForTheSlowest) {
  EXPECT_FALSE(Waits(1));
  EXPECT_TRUE(Waits(2));
  EXPECT_EQ(Value(driver_.core().decided()), 2u);  // Its push has taken effect meanwhile.

  driver_.Push(ExchangeAt(1, 1, 0));
  driver_.PublishAll();

  EXPECT_TRUE(driver_.waiting().empty());
}

TEST_F(SspTest, NobodyWaitsForWhoRests) {
  Waits(1);
  ASSERT_TRUE(Waits(2));

  driver_.Push(RestOf(1, 1));

  EXPECT_TRUE(driver_.waiting().empty());
}

TEST_F(SspTest, NobodyWaitsForWhoHasLeft) {
  Waits(1);
  ASSERT_TRUE(Waits(2));

  View view = FoundingView(1);
  view.number = ViewNumber{100};
  driver_.OnView(view);

  EXPECT_TRUE(driver_.waiting().empty());
}

TEST_F(SspTest, NobodyWaitsOnceTheRunDrains) {
  Waits(1);
  ASSERT_TRUE(Waits(2));

  driver_.OnPhase(Phase::kDraining);

  EXPECT_TRUE(driver_.waiting().empty());
}

TEST_F(SspTest, WhoComesBackGoesOnBesideTheSlowest) {
  driver_.Push(RestOf(1, 1));
  for (uint64_t clock = 1; clock <= 9; ++clock) EXPECT_FALSE(Waits(clock));

  driver_.Pull(PullAt(1, 0, /*sequence=*/2));

  EXPECT_EQ(driver_.core().members().At(WorkerId{1}).clock, WorkerClock{9});
  EXPECT_FALSE(Waits(10));
  EXPECT_TRUE(Waits(11));
}

TEST_F(SspTest, AReleaseAloneIsNoSignOfWork) {
  driver_.Push(RestOf(1, 1));
  driver_.Push(ExcuseOf(1, 2, 0));

  EXPECT_FALSE(Waits(1));
  EXPECT_FALSE(Waits(2));
}

TEST_F(SspTest, AClockCountsAlsoOnAPushThatIsTooStale) {
  ConsistencySpec spec = Spec();
  spec.max_staleness = {.action = StalenessGuardSpec::Action::kReject, .bound = 0};
  ShardMachineDriver driver(TestOptions(spec));
  driver.Start(FoundingView(2));
  driver.Pull(PullAt(0, 0));
  driver.Pull(PullAt(1, 0));
  for (uint64_t clock = 1; clock <= 2; ++clock) {
    driver.Push(ExchangeAt(0, clock, clock - 1));
    driver.PublishAll();
  }
  ASSERT_EQ(driver.waiting().size(), 1u);

  EXPECT_EQ(driver.Push(ExchangeAt(1, 1, 0)).reply.outcome, PushOutcome::kTooStale);

  EXPECT_TRUE(driver.waiting().empty());
}

}  // namespace
}  // namespace slipstream
