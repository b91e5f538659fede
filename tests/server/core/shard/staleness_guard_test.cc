#include <gtest/gtest.h>

#include <cstdint>
#include <variant>

#include "tests/support/shard_machine_driver.h"

// Tests of how the staleness guard treats gradients beyond its bound under each action.

namespace slipstream {
namespace {

using Action = StalenessGuardSpec::Action;
using Policy = ConsistencySpec::Policy;

ConsistencySpec Guarded(Action action, uint64_t bound, Policy policy = Policy::kAsync) {
  return {.policy = policy, .max_staleness = {.action = action, .bound = bound}};
}

/// Worker 0 alone makes `updates` versions.
void RunAhead(ShardMachineDriver& driver, uint64_t updates) {
  for (uint64_t step = 0; step < updates; ++step) {
    driver.Push(PushOf(0, step + 1, step));
    driver.PublishAll();
  }
}

uint64_t Decided(const ShardMachineDriver& driver) { return Value(driver.core().decided()); }

TEST(RejectTest, RefusesByNameAndKeepsTheSequenceFree) {
  ShardMachineDriver driver(TestOptions(Guarded(Action::kReject, 2)));
  driver.Start(FoundingView(2));
  RunAhead(driver, 3);
  const std::string before = Describe(driver.core());

  const PushDecision stale = driver.Push(PushOf(1, 1, 0));

  EXPECT_EQ(stale.reply.outcome, PushOutcome::kTooStale);
  EXPECT_EQ(stale.reply.staleness, 3u);
  EXPECT_EQ(stale.reply.message, "staleness 3 exceeds the bound 2");
  EXPECT_EQ(Describe(driver.core()), before);
  EXPECT_EQ(driver.core().guard_counts().rejected, 1u);
  EXPECT_EQ(driver.Push(PushOf(1, 1, 1)).reply.outcome, PushOutcome::kApplied) << "at the bound";
  EXPECT_EQ(driver.core().lag().max(), 2u);
}

TEST(RejectTest, RefusesAPushThatAgedWhileItsPayloadCame) {
  ShardMachineDriver driver(TestOptions(Guarded(Action::kReject, 2)));
  driver.Start(FoundingView(2));
  ShardMachine::PushFacts slow = PushOf(1, 1, 0);
  slow.push = driver.core().OnPushHeader(slow.header).push;
  RunAhead(driver, 3);

  const ShardOutput output = driver.core().OnPush(CallId{1000}, slow);

  EXPECT_EQ(output.record->reply.outcome, PushOutcome::kTooStale);
  EXPECT_FALSE(output.keeps_payload);
}

TEST(RejectTest, AnswersARepetitionHoweverOldItIsNow) {
  ShardMachineDriver driver(TestOptions(Guarded(Action::kReject, 2)));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(1, 1, 0));
  for (uint64_t step = 1; step < 6; ++step) driver.Push(PushOf(0, step, step));

  EXPECT_EQ(driver.Push(PushOf(1, 1, 0)).reply.outcome, PushOutcome::kDuplicate);
}

TEST(RejectTest, DoesNotServeForTrainingWhatItWouldRefuse) {
  ShardMachineDriver driver(TestOptions(Guarded(Action::kReject, 2)));
  driver.Start(FoundingView(3));
  for (uint64_t step = 0; step < 5; ++step) driver.Push(PushOf(0, step + 1, step));

  const PullDecision pull = driver.Pull(TrainingPullOf(1));

  ASSERT_TRUE(std::holds_alternative<Park>(pull)) << "version 0 of 5 is published";
  driver.PublishAll();
  const CallId call = std::get<Park>(pull).call;
  EXPECT_EQ(driver.released().at(call).version, Version{3});
}

TEST(DropTest, AcknowledgesWithoutEffectAndUsesTheSequenceUp) {
  ShardMachineDriver driver(TestOptions(Guarded(Action::kDrop, 2)));
  driver.Start(FoundingView(2));
  RunAhead(driver, 3);
  const double weight = driver.weights().back();

  const PushDecision stale = driver.Push(PushOf(1, 1, 0), 7.0);

  EXPECT_EQ(stale.reply.outcome, PushOutcome::kDroppedLate);
  EXPECT_EQ(stale.reply.message, "its staleness exceeds the bound 2");
  EXPECT_EQ(Decided(driver), 3u);
  EXPECT_EQ(driver.weights().back(), weight);
  EXPECT_EQ(driver.core().guard_counts().dropped, 1u);
  EXPECT_EQ(driver.Push(PushOf(1, 2, 3)).reply.outcome, PushOutcome::kApplied);
}

TEST(ScaleTest, MultipliesByBoundOverStaleness) {
  ShardMachineDriver driver(TestOptions(Guarded(Action::kScale, 2)));
  driver.Start(FoundingView(2));
  RunAhead(driver, 8);
  const double weight = driver.weights().back();

  driver.Push(PushOf(1, 1, 0), 4.0);

  EXPECT_DOUBLE_EQ(driver.weights().back(), weight - 4.0 * 2 / 8);
  EXPECT_EQ(driver.core().guard_counts().scaled, 1u);
  EXPECT_EQ(driver.core().lag().max(), 8u) << "the staleness itself is told as it is";
}

TEST(HardsyncGuardTest, NeverEngages) {
  ShardMachineDriver driver(TestOptions(Guarded(Action::kReject, 0, Policy::kHardsync)));
  driver.Start(FoundingView(1));
  RunAhead(driver, 3);

  EXPECT_EQ(driver.Push(PushOf(0, 4, 0)).reply.outcome, PushOutcome::kDroppedLate);
  EXPECT_EQ(driver.core().guard_counts().rejected, 0u);
}

/// Async with bound 2: worker 1 has pulled version 0 and not pushed yet.
class BlockTest : public testing::Test {
 protected:
  BlockTest() {
    driver_.Start(FoundingView(3));
    driver_.Pull(TrainingPullOf(0));
    driver_.Pull(TrainingPullOf(1));
  }

  /// Worker 0 exchanges three times. The third update would leave worker 1 beyond the bound.
  PushDecision ReachTheBound() {
    driver_.Push(ExchangeOf(0, 1, 0), 1.0);
    driver_.PublishAll();
    driver_.Push(ExchangeOf(0, 2, 1), 1.0);
    driver_.PublishAll();
    return driver_.Push(ExchangeOf(0, 3, 2), 1.0);
  }

  ShardMachineDriver driver_{TestOptions(Guarded(Action::kBlock, 2))};
};

TEST_F(BlockTest, HoldsTheRoundBackAndParksWhoHasAGradientInIt) {
  const PushDecision third = ReachTheBound();

  EXPECT_EQ(Decided(driver_), 2u);
  EXPECT_EQ(driver_.LackedMembers(), std::vector{WorkerId{1}});
  EXPECT_EQ(driver_.core().guard_counts().rounds_held_back, 1u);
  ASSERT_TRUE(third.answer.has_value());
  EXPECT_TRUE(std::holds_alternative<Park>(*third.answer));
  EXPECT_EQ(third.reply.outcome, PushOutcome::kApplied);
  EXPECT_EQ(third.reply.version, Version{3});
}

TEST_F(BlockTest, TheAwaitedGradientJoinsTheOpenRound) {
  ReachTheBound();

  const PushDecision late = driver_.Push(PushOf(1, 1, 0), 1.0);
  driver_.PublishAll();

  EXPECT_EQ(late.reply.staleness, 2u);
  EXPECT_EQ(Decided(driver_), 3u);
  EXPECT_EQ(driver_.LastFolded(), "0 1");
  EXPECT_EQ(driver_.core().lag().max(), 2u);
  EXPECT_TRUE(driver_.waiting().empty());
  EXPECT_EQ(driver_.core().guard_counts().rejected, 0u);
}

TEST_F(BlockTest, AnOldPushRepeatedByTheNetworkHoldsNothingBack) {
  ReachTheBound();
  const PushDecision ghost = driver_.Push(ExchangeOf(0, 1, 0), 1.0);
  ASSERT_EQ(ghost.reply.outcome, PushOutcome::kDuplicate);

  driver_.Push(PushOf(1, 1, 0), 1.0);

  EXPECT_EQ(Decided(driver_), 3u);
  EXPECT_TRUE(driver_.LackedMembers().empty());
}

TEST_F(BlockTest, OthersMayStillStart) {
  ReachTheBound();

  EXPECT_TRUE(std::holds_alternative<Serve>(driver_.Pull(TrainingPullOf(2))));
}

TEST_F(BlockTest, TheDeathOfTheAwaitedWorkerLetsTheRoundClose) {
  ReachTheBound();
  View view = FoundingView(3);
  view.number = ViewNumber{2};
  std::erase_if(view.members, [](const Member& member) { return member.worker == WorkerId{1}; });

  driver_.OnView(view);

  EXPECT_EQ(Decided(driver_), 3u);
}

TEST_F(BlockTest, AWorkerThatGivesItsPullUpLetsTheRoundClose) {
  ReachTheBound();

  const PushDecision excuse = driver_.Push(ExcuseOf(1, 1, 0));

  EXPECT_EQ(excuse.reply.outcome, PushOutcome::kBuffered);
  EXPECT_EQ(Decided(driver_), 3u);
  EXPECT_EQ(driver_.LastFolded(), "0");
}

TEST_F(BlockTest, WhoAsksAgainMayStillUseTheFirstAnswer) {
  ReachTheBound();

  const PullDecision again = driver_.Pull(TrainingPullOf(1));

  EXPECT_EQ(std::get<Serve>(again).version, Version{2});
  EXPECT_EQ(Decided(driver_), 2u);
  EXPECT_EQ(driver_.Push(PushOf(1, 1, 0)).reply.outcome, PushOutcome::kApplied);
  EXPECT_EQ(Decided(driver_), 3u);
}

TEST_F(BlockTest, APullRepeatedByTheNetworkHoldsNothingBack) {
  driver_.Push(ExcuseOf(1, 1, 0));
  const PullDecision ghost = driver_.Pull(TrainingPullOf(1));
  EXPECT_TRUE(std::holds_alternative<Serve>(ghost));

  ReachTheBound();

  EXPECT_EQ(Decided(driver_), 3u);
  EXPECT_TRUE(driver_.LackedMembers().empty());
}

TEST_F(BlockTest, WhoWaitsForTheRoundAndAsksAgainWaitsOn) {
  ReachTheBound();
  driver_.Pull(TrainingPullOf(2));
  driver_.Push(PushOf(2, 1, 2), 1.0);
  const PullRequest request = TrainingPullOf(2, 0, 2);
  ASSERT_TRUE(std::holds_alternative<Park>(driver_.Pull(request)));

  const PullDecision again = driver_.Pull(request);

  ASSERT_TRUE(std::holds_alternative<Park>(again));
  driver_.Push(PushOf(1, 1, 0), 1.0);
  driver_.PublishAll();
  const CallId call = std::get<Park>(again).call;
  EXPECT_EQ(driver_.released().at(call).version, Version{3});
}

TEST_F(BlockTest, RefusesTheGradientOfAPullThatWasGivenUp) {
  ReachTheBound();
  driver_.Push(ExcuseOf(1, 1, 0));

  EXPECT_EQ(driver_.Push(PushOf(1, 2, 0)).reply.outcome, PushOutcome::kTooStale);
}

TEST_F(BlockTest, TheEndOfTheWorkClosesTheRound) {
  ReachTheBound();

  driver_.OnPhase(Phase::kDraining);

  EXPECT_EQ(Decided(driver_), 3u);
  driver_.PublishAll();
  EXPECT_TRUE(driver_.core().is_drained());
}

TEST(BlockOfSoftsyncTest, WhoJoinsMakesARoundThatIsHeldBackWantNoMore) {
  ConsistencySpec consistency = Guarded(Action::kBlock, 0, Policy::kSoftsync);
  consistency.parameters["n"] = 1;
  ShardMachineDriver driver(TestOptions(consistency));
  driver.Start(FoundingView(2));
  for (const uint32_t worker : {0u, 1u}) driver.Pull(TrainingPullOf(worker));
  driver.Push(ExchangeOf(0, 1, 0));
  const PushDecision second = driver.Push(ExchangeOf(0, 2, 0));
  ASSERT_TRUE(std::holds_alternative<Park>(*second.answer)) << "for worker 1's gradient";
  View larger = FoundingView(4);
  larger.number = ViewNumber{2};
  driver.OnView(larger);
  EXPECT_EQ(Decided(driver), 0u) << "the bound holds all the same";

  driver.Push(ExcuseOf(1, 1, 0));
  driver.PublishAll();

  EXPECT_EQ(Decided(driver), 1u);
  EXPECT_TRUE(driver.waiting().empty());
}

TEST(BlockOfOtherShardsTest, NoWorkerWaitsAtAnyButTheFirst) {
  ShardMachine::Options options = TestOptions(Guarded(Action::kBlock, 0));
  options.shard = ShardId{1};
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(2));
  driver.Pull(TrainingPullOf(0));
  driver.Pull(TrainingPullOf(1));

  const PushDecision first = driver.Push(ExchangeOf(0, 1, 0), 1.0);

  EXPECT_EQ(Decided(driver), 0u) << "the bound holds all the same";
  EXPECT_EQ(first.reply.outcome, PushOutcome::kBuffered);
  EXPECT_TRUE(std::holds_alternative<Serve>(*first.answer));
}

/// Async with bound 2: worker 0 has two gradients of version 0 in flight, worker 1 has none.
class BlockWithTwoInFlightTest : public testing::Test {
 protected:
  BlockWithTwoInFlightTest() {
    driver_.Start(FoundingView(2));
    for (const uint32_t slot : {0u, 1u}) driver_.Pull(InSlot(slot, TrainingPullOf(0)));
  }

  static ShardMachine::Options Options() {
    ShardMachine::Options options = TestOptions(Guarded(Action::kBlock, 2));
    options.gradients_in_flight = 2;
    return options;
  }
  static PullRequest InSlot(uint32_t slot, PullRequest request) {
    request.slot = slot;
    return request;
  }
  static ShardMachine::PushFacts InSlot(uint32_t slot, ShardMachine::PushFacts push) {
    push.header.slot = slot;
    return push;
  }

  /// Worker 1 pushes until version `updates` is published.
  void RunOn(uint64_t updates) {
    for (uint64_t sequence = 1; Decided(driver_) < updates; ++sequence) {
      driver_.Push(PushOf(1, sequence, Decided(driver_)));
      driver_.PublishAll();
    }
  }

  ShardMachineDriver driver_{Options()};
};

TEST_F(BlockWithTwoInFlightTest, AWorkerNeverWaitsForItself) {
  RunOn(2);

  const PushDecision first = driver_.Push(InSlot(0, ExchangeOf(0, 1, 0)));

  EXPECT_EQ(Decided(driver_), 2u);
  EXPECT_EQ(driver_.LackedMembers(), std::vector{WorkerId{0}});
  EXPECT_TRUE(std::holds_alternative<Serve>(*first.answer));
}

TEST_F(BlockWithTwoInFlightTest, OneGradientOfAVersionDoesNotStandForTheOther) {
  RunOn(2);
  driver_.Push(InSlot(0, PushOf(0, 1, 0)));
  ASSERT_EQ(Decided(driver_), 2u);

  const PushDecision second = driver_.Push(InSlot(1, PushOf(0, 2, 0)));

  EXPECT_EQ(second.reply.outcome, PushOutcome::kApplied) << second.reply.message;
  EXPECT_EQ(second.reply.staleness, 2u);
  EXPECT_EQ(Decided(driver_), 3u);
}

TEST_F(BlockWithTwoInFlightTest, WeightsGivenUpInAnyOrderHoldNothingBack) {
  driver_.Push(InSlot(1, ExcuseOf(0, 1, 0)));
  driver_.Push(InSlot(0, ExcuseOf(0, 2, 0)));

  driver_.Push(PushOf(1, 1, 0));
  driver_.Push(PushOf(1, 2, 1));
  driver_.Push(PushOf(1, 3, 2));

  EXPECT_EQ(Decided(driver_), 3u);
}

TEST_F(BlockWithTwoInFlightTest, AnAnswerAskedForAgainLetsNoOlderGradientGoStale) {
  // The first gradient makes version 1. Its answer is lost, while the second gradient is in flight.
  driver_.Push(InSlot(0, ExchangeOf(0, 1, 0)));
  driver_.PublishAll();
  const PushDecision again = driver_.Push(InSlot(0, ExchangeOf(0, 1, 0)));
  ASSERT_EQ(again.reply.outcome, PushOutcome::kDuplicate);

  driver_.Push(PushOf(1, 1, 1));
  driver_.Push(PushOf(1, 2, 2));

  EXPECT_EQ(Decided(driver_), 2u);
  EXPECT_EQ(driver_.LackedMembers(), std::vector{WorkerId{0}});
  const PushDecision second = driver_.Push(InSlot(1, ExchangeOf(0, 2, 0)));
  EXPECT_EQ(second.reply.outcome, PushOutcome::kApplied) << second.reply.message;
  EXPECT_EQ(second.reply.staleness, 2u);
}

TEST_F(BlockWithTwoInFlightTest, RefusesASlotThatTheRunDoesNotHave) {
  EXPECT_EQ(driver_.Push(InSlot(2, PushOf(0, 1, 0))).reply.outcome, PushOutcome::kShapeMismatch);
}

}  // namespace
}  // namespace slipstream
