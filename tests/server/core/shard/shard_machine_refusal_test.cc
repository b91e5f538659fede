#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "tests/support/shard_machine_driver.h"

// Tests that every refusal has its name and changes nothing, and of what uses up a sequence.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using PushFacts = ShardMachine::PushFacts;

constexpr ConsistencySpec kSoftsync = {Policy::kSoftsync};
constexpr ConsistencySpec kHardsync = {Policy::kHardsync};
constexpr ConsistencySpec kSsp = {Policy::kSsp};

bool IsAdmitted(ShardMachine& machine, const PushHeader& header) {
  return !machine.OnPushHeader(header).refusal.has_value();
}

struct BadPush {
  std::string name;
  PushOutcome outcome;
  std::function<void(PushFacts&)> spoil;
  ConsistencySpec consistency = kSoftsync;
};

// Worker 1 of 3 has pushed sequence 1. The bad push is its sequence 2.
class RefusedPush : public testing::TestWithParam<BadPush> {
 protected:
  RefusedPush() : driver_(TestOptions(GetParam().consistency)) {
    driver_.Start(FoundingView(3));
    driver_.Push(PushOf(1, 1, 0), 5.0);
    if (GetParam().consistency.policy == Policy::kHardsync) {
      driver_.Push(PushOf(0, 1, 0), 5.0);
      driver_.Push(PushOf(2, 1, 0), 5.0);
    }
    good_ = PushOf(1, 2, Value(driver_.core().decided()));
    bad_ = good_;
    GetParam().spoil(bad_);
  }

  ShardMachineDriver driver_;
  PushFacts good_;
  PushFacts bad_;
};

TEST_P(RefusedPush, IsNamedAndChangesNothing) {
  const std::string before = Describe(driver_.core());

  const PushDecision decision = driver_.Push(bad_);

  EXPECT_EQ(Name(decision.reply.outcome), Name(GetParam().outcome));
  EXPECT_FALSE(decision.reply.message.empty());
  EXPECT_EQ(decision.reply.version, driver_.core().decided());
  EXPECT_FALSE(decision.took_effect);
  EXPECT_FALSE(decision.retained);
  EXPECT_FALSE(decision.answer.has_value());
  EXPECT_EQ(Describe(driver_.core()), before);
  EXPECT_EQ(driver_.core().outcomes().at(GetParam().outcome), 1u);
}

TEST_P(RefusedPush, IsRefusedTooIfOnlyTheCompletePushShowsIt) {
  // A wrong count shows in the header already, so the case does not arise.
  if (bad_.header.count != good_.header.count) return;
  ShardMachine& core = driver_.core();
  const std::string before = Describe(core);
  bad_.push = core.OnPushHeader(good_.header).push;

  const ShardOutput output = core.OnPush(CallId{1}, bad_);

  EXPECT_EQ(Name(output.record->reply.outcome), Name(GetParam().outcome));
  EXPECT_EQ(Describe(core), before);
}

TEST_P(RefusedPush, DoesNotUseUpItsSequence) {
  driver_.Push(bad_);

  const PushDecision decision = driver_.Push(good_);

  EXPECT_TRUE(decision.took_effect) << Name(decision.reply.outcome);
}

INSTANTIATE_TEST_SUITE_P(
    Promises, RefusedPush,
    testing::Values(
        BadPush{"OlderIncarnation", PushOutcome::kFenced,
                [](PushFacts& push) { push.header.identity.incarnation = Incarnation{1}; }},
        BadPush{"WorkerThatIsNoMember", PushOutcome::kFenced,
                [](PushFacts& push) { push.header.identity.worker = WorkerId{7}; }},
        BadPush{"IncarnationOfAViewToCome", PushOutcome::kRetryLater,
                [](PushFacts& push) { push.header.identity.incarnation = Incarnation{99}; }},
        BadPush{"SequenceAhead", PushOutcome::kOutOfSequence,
                [](PushFacts& push) { push.header.sequence = Sequence{3}; }},
        BadPush{"SequenceZero", PushOutcome::kOutOfSequence,
                [](PushFacts& push) { push.header.sequence = Sequence{0}; }},
        BadPush{"SequenceUsedForAnotherPayload", PushOutcome::kSequenceReused,
                [](PushFacts& push) {
                  push.header.sequence = Sequence{1};
                  push.checksum = 424'242;
                }},
        BadPush{"OtherRun", PushOutcome::kWrongRun,
                [](PushFacts& push) { ++push.header.identity.run; }},
        BadPush{"OtherShardMap", PushOutcome::kWrongShardMap,
                [](PushFacts& push) { ++push.header.shard_map; }},
        BadPush{"OtherKind", PushOutcome::kShapeMismatch,
                [](PushFacts& push) { push.header.kind = PushKind::kDelta; }},
        BadPush{"OtherSize", PushOutcome::kShapeMismatch,
                [](PushFacts& push) {
                  ++push.header.count;
                  ++push.values_received;
                }},
        BadPush{"HugeSize", PushOutcome::kShapeMismatch,
                [](PushFacts& push) { push.header.count = ~uint64_t{0}; }},
        BadPush{"ExcuseWhereNothingIsOwed", PushOutcome::kShapeMismatch,
                [](PushFacts& push) {
                  push.header.count = 0;
                  push.header.examples = 0;
                  push.values_received = 0;
                }},
        BadPush{"ValuesMissing", PushOutcome::kLengthMismatch,
                [](PushFacts& push) { --push.values_received; }},
        BadPush{"ValuesTooMany", PushOutcome::kLengthMismatch,
                [](PushFacts& push) { ++push.values_received; }},
        BadPush{"NotFinite", PushOutcome::kNonfinite,
                [](PushFacts& push) { push.is_finite = false; }},
        BadPush{"TooManyExamples", PushOutcome::kTooManyExamples,
                [](PushFacts& push) { push.header.examples = 65'537; }},
        BadPush{"TooManyExamplesWhateverTheBatches", PushOutcome::kTooManyExamples,
                [](PushFacts& push) {
                  push.header.examples = 65'537;
                  push.header.batches = {{.first = 0, .count = ~uint64_t{0}}};
                }},
        BadPush{"BaseFromTheFuture", PushOutcome::kFutureVersion,
                [](PushFacts& push) { push.header.base = Next(push.header.base); }},
        BadPush{"SspClockThatStandsStill", PushOutcome::kShapeMismatch,
                [](PushFacts& push) { push.header.clock = WorkerClock{1}; }, kSsp},
        BadPush{"SspClockThatGoesBack", PushOutcome::kShapeMismatch,
                [](PushFacts& push) { push.header.clock = WorkerClock{}; }, kSsp},
        BadPush{"HardsyncBaseFromTheFuture", PushOutcome::kFutureVersion,
                [](PushFacts& push) { push.header.base = Next(push.header.base); }, kHardsync},
        BadPush{"HardsyncNotFinite", PushOutcome::kNonfinite,
                [](PushFacts& push) { push.is_finite = false; }, kHardsync},
        BadPush{"HardsyncExcuseWithValues", PushOutcome::kLengthMismatch,
                [](PushFacts& push) {
                  push.header.count = 0;
                  push.header.examples = 0;
                },
                kHardsync}),
    [](const auto& tested) { return tested.param.name; });

TEST(RefusalTest, AMemberThatTheCoordinatorDoesNotKnowIsRefusedByName) {
  ShardMachineDriver driver(TestOptions(kSoftsync));
  driver.Start(FoundingView(3));
  PushFacts made_up = PushOf(1, 1, 0);
  made_up.header.identity.incarnation = Incarnation{99};
  EXPECT_EQ(driver.Push(made_up).reply.outcome, PushOutcome::kRetryLater);

  driver.core().OnCoordinatorAsked();
  driver.core().OnCoordinatorAnswered();

  const PushReply reply = driver.Push(made_up).reply;
  EXPECT_EQ(reply.outcome, PushOutcome::kUnknownMember);
  EXPECT_EQ(reply.message, "the coordinator knows no incarnation 99 of worker 1");
  EXPECT_FALSE(IsRefusal(driver.Push(PushOf(1, 1, 0)).reply.outcome)) << "the member itself";
}

TEST(RefusalTest, AClockThatDoesNotGoUpIsNamed) {
  ShardMachineDriver driver(TestOptions(kSsp));
  driver.Start(FoundingView(2));
  PushFacts first = PushOf(0, 1, 0);
  first.header.clock = WorkerClock{5};
  driver.Push(first);
  PushFacts next = PushOf(0, 2, 1);
  next.header.clock = WorkerClock{4};

  EXPECT_EQ(driver.Push(next).reply.message,
            "clock 4, where the worker's push before had 5: it goes up by one with each push");
  EXPECT_EQ(driver.Push(first).reply.outcome, PushOutcome::kDuplicate) << "an honest repetition";
}

TEST(RefusalTest, NobodyWaitsForAClockUnderOtherPolicies) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  PushFacts push = PushOf(0, 1, 0);
  push.header.clock = WorkerClock{};

  EXPECT_EQ(driver.Push(push).reply.outcome, PushOutcome::kApplied);
}

TEST(RefusalTest, OutOfSequenceTellsTheNumberExpected) {
  ShardMachineDriver driver(TestOptions(kSoftsync));
  driver.Start(FoundingView(3));
  driver.Push(PushOf(1, 1, 0));

  EXPECT_EQ(driver.Push(PushOf(1, 5, 0)).reply.expected, Sequence{2});
}

TEST(RefusalTest, AnAnswerNoLongerKeptIsOutOfSequence) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  const uint64_t pushes = MemberRecord::kAnswersKept + 1;
  for (uint64_t sequence = 1; sequence <= pushes; ++sequence) driver.Push(PushOf(0, sequence, 0));

  const PushDecision decision = driver.Push(PushOf(0, 1, 0));

  EXPECT_EQ(decision.reply.outcome, PushOutcome::kOutOfSequence);
  EXPECT_EQ(decision.reply.expected, Sequence{pushes + 1});
}

TEST(RefusalTest, PushesBeforeTheInitialWeightsAreAskedToComeAgain) {
  ShardMachineDriver driver(TestOptions(kSoftsync));
  driver.OnView(FoundingView(3));

  const PushReply reply = driver.Push(PushOf(0, 1, 0)).reply;

  EXPECT_EQ(reply.outcome, PushOutcome::kRetryLater);
  EXPECT_GT(reply.retry_after_ms, 0u);
}

/// Returns the founding view, in which one worker has come back under a new incarnation.
View ViewAfterRestart(uint32_t workers, uint32_t restarted) {
  View view = FoundingView(workers);
  view.number = ViewNumber{2};
  view.members[restarted].incarnation = Incarnation{9};
  return view;
}

TEST(RefusalTest, AMemberFencedWhileItsPayloadComesIsRefused) {
  ShardMachineDriver driver(TestOptions(kSoftsync));
  driver.Start(FoundingView(3));
  PushFacts push = PushOf(1, 1, 0);
  push.push = driver.core().OnPushHeader(push.header).push;
  driver.OnView(ViewAfterRestart(3, 1));

  const ShardOutput output = driver.core().OnPush(CallId{1}, push);

  EXPECT_EQ(output.record->reply.outcome, PushOutcome::kFenced);
}

TEST(RefusalTest, DroppedLateUsesUpItsSequence) {
  ShardMachineDriver driver(TestOptions(kHardsync));
  driver.Start(FoundingView(1));
  driver.Push(PushOf(0, 1, 0));

  EXPECT_EQ(driver.Push(PushOf(0, 2, 0)).reply.outcome, PushOutcome::kDroppedLate);
  EXPECT_EQ(driver.core().members().At(WorkerId{0}).expected(), Sequence{3});
}

TEST(AdmissionTest, IsByBytesAndAsksToComeAgain) {
  ShardMachine::Options options = TestOptions(kSoftsync);
  options.push_bytes_max = 8 * sizeof(float);
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(4));
  ShardMachine& core = driver.core();
  ASSERT_TRUE(IsAdmitted(core, PushOf(0, 1, 0).header));
  ASSERT_TRUE(IsAdmitted(core, PushOf(1, 1, 0).header));
  const std::string before = Describe(core);

  const auto refusal = core.OnPushHeader(PushOf(2, 1, 0).header).refusal;

  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->outcome, PushOutcome::kRetryLater);
  EXPECT_GT(refusal->retry_after_ms, 0u);
  EXPECT_EQ(Describe(core), before);

  core.ReleaseBytes(4 * sizeof(float));
  EXPECT_TRUE(IsAdmitted(core, PushOf(2, 1, 0).header));
}

TEST(AdmissionTest, LeavesRoomForWhatMembersMayHaveOnTheirWay) {
  ShardMachine::Options options = TestOptions(kSoftsync);
  options.gradients_in_flight = 2;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(2));
  EXPECT_EQ(driver.core().bytes_queued_max(), 16 * sizeof(float));

  View view = FoundingView(9);
  view.number = ViewNumber{2};
  driver.OnView(view);
  EXPECT_EQ(driver.core().bytes_queued_max(), 72 * sizeof(float));
}

TEST(AdmissionTest, AMemberThatBeginsManyPushesDoesNotKeepOthersOut) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.gradients_in_flight = 2;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(2));
  ShardMachine& core = driver.core();
  const PushHeader begun = PushOf(0, 1, 0).header;
  const PushId first = core.OnPushHeader(begun).push;
  ASSERT_TRUE(IsAdmitted(core, begun));

  const auto refusal = core.OnPushHeader(begun).refusal;

  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->outcome, PushOutcome::kRetryLater);
  EXPECT_EQ(driver.Push(PushOf(1, 1, 0)).reply.outcome, PushOutcome::kApplied);
  core.OnPushAbandoned(first, begun);
  EXPECT_EQ(driver.Push(PushOf(0, 1, 0)).reply.outcome, PushOutcome::kApplied);
}

TEST(AdmissionTest, PushesOfAnOlderGenerationDoNotCountAsTheNewOnes) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(2));
  ASSERT_TRUE(IsAdmitted(driver.core(), PushOf(0, 1, 0).header));
  const View view = ViewAfterRestart(2, 0);
  driver.OnView(view);
  PushHeader header = PushOf(0, 1, 0).header;
  header.identity.incarnation = view.members[0].incarnation;

  EXPECT_TRUE(IsAdmitted(driver.core(), header));
}

TEST(AdmissionTest, WhoIsWaitedForMayBeginOnceMoreBeforeABrokenConnectionIsNoticed) {
  ShardMachineDriver driver(TestOptions(kHardsync));
  driver.Start(FoundingView(2));
  ShardMachine& core = driver.core();
  ASSERT_TRUE(IsAdmitted(core, PushOf(0, 1, 0).header));

  EXPECT_TRUE(IsAdmitted(core, PushOf(0, 1, 0).header));

  EXPECT_FALSE(IsAdmitted(core, PushOf(0, 1, 0).header));
  EXPECT_TRUE(IsAdmitted(core, PushOf(1, 1, 0).header));
}

TEST(AdmissionTest, BytesAreCountedFromTheHeaderUntilReleased) {
  ShardMachineDriver driver(TestOptions(kHardsync));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(1, 1, 0));
  EXPECT_EQ(driver.core().bytes_queued(), 4 * sizeof(float));  // Held until worker 0 pushes.

  driver.Push(PushOf(0, 1, 0));
  EXPECT_EQ(driver.core().bytes_queued(), 0u);
}

TEST(AdmissionTest, HeldPushesNeverKeepOutTheOneTheyWaitFor) {
  ShardMachine::Options options = TestOptions(kHardsync);
  options.push_bytes_max = 2 * TestPlan().count * sizeof(float);
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(3));
  driver.Push(PushOf(1, 1, 0), 1);
  driver.Push(PushOf(2, 1, 0), 1);

  driver.Push(PushOf(0, 1, 0), 1);

  EXPECT_EQ(driver.core().decided(), Version{1});
}

TEST(AdmissionTest, HeldPushesOfWhoHasLeftNeverKeepOutTheOneTheyWaitFor) {
  ShardMachineDriver driver(TestOptions(kHardsync));
  driver.Start(FoundingView(3));
  driver.Push(PushOf(1, 1, 0), 1);
  driver.Push(PushOf(2, 1, 0), 1);
  driver.OnView({.number = ViewNumber{2}, .members = {FoundingView(3).members[0]}});

  driver.Push(PushOf(0, 1, 0), 1);

  EXPECT_EQ(driver.core().decided(), Version{1});
  EXPECT_EQ(driver.LastFolded(), "0 1 2");
}

TEST(AdmissionTest, HeldPushesNeverKeepOutTheExcuseTheyWaitFor) {
  ShardMachine::Options options = TestOptions(kHardsync);
  options.push_bytes_max = 1;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(3));
  driver.Push(PushOf(1, 1, 0), 1);
  driver.Push(PushOf(2, 1, 0), 1);

  driver.Push(ExcuseOf(0, 1, 0));

  EXPECT_EQ(driver.core().decided(), Version{1});
}

TEST(RefusedPullTest, IsNamed) {
  using Reason = PullRefusal;
  ShardMachine::Options options = TestOptions(kSoftsync);
  options.parked_max = 1;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(2));
  const auto reason = [&driver](const PullRequest& request) {
    return std::get<PullRefusal>(driver.Pull(request));
  };

  PullRequest request = TrainingPullOf(0);
  ++request.identity->run;
  EXPECT_EQ(reason(request), Reason::kWrongRun);
  request = TrainingPullOf(0);
  ++request.shard_map;
  EXPECT_EQ(reason(request), Reason::kWrongShardMap);
  EXPECT_EQ(reason(TrainingPullOf(5)), Reason::kUnknownMember);
  driver.core().OnCoordinatorAsked();
  driver.core().OnCoordinatorAnswered();
  EXPECT_EQ(reason(TrainingPullOf(5)), Reason::kMadeUpMember);
  request = TrainingPullOf(1);
  request.identity->incarnation = Incarnation{1};
  EXPECT_EQ(reason(request), Reason::kFenced);
  EXPECT_EQ(reason(TrainingPullOf(0, 0, 2)), Reason::kOutOfSequence);
  request = TrainingPullOf(0);
  request.slot = 1;
  EXPECT_EQ(reason(request), Reason::kNoSuchSlot);

  ASSERT_TRUE(std::holds_alternative<Park>(driver.Pull(TrainingPullOf(0, 1))));
  EXPECT_EQ(reason(TrainingPullOf(1, 1)), Reason::kTooManyParked);
}

TEST(RefusedPullTest, AMemberThatAsksAgainAndAgainLeavesRoomForOthers) {
  ShardMachine::Options options = TestOptions(kSoftsync);
  options.parked_of_member_max = 3;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(2));
  for (int times = 0; times < 3; ++times) {
    ASSERT_TRUE(std::holds_alternative<Park>(driver.Pull(TrainingPullOf(0, 1))));
  }

  EXPECT_TRUE(std::holds_alternative<PullRefusal>(driver.Pull(TrainingPullOf(0, 1))));
  EXPECT_TRUE(std::holds_alternative<Park>(driver.Pull(TrainingPullOf(1, 1))));
}

}  // namespace
}  // namespace slipstream
