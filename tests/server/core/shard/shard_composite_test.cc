#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/protocol/composite_push.h"
#include "tests/support/shard_machine_driver.h"

// Tests of pushes that combine those of several workers: all of their parts count, each once, or
// none does.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using Facts = ShardMachine::PushFacts;

constexpr bool kWeighsExamples = true;

class CompositeTest : public testing::Test {
 protected:
  explicit CompositeTest(ShardMachine::Options options = TestOptions({Policy::kAsync}))
      : driver_(std::move(options)) {
    driver_.Start(FoundingView(4));
  }

  uint64_t decided() const { return Value(driver_.core().decided()); }
  PushReply Reply(const Facts& push, double gradient = 1) {
    return driver_.Push(push, gradient).reply;
  }
  void ExpectNotCombined(const Facts& composite, const std::string& why) {
    const std::string before = Describe(driver_.core());
    const PushReply reply = Reply(composite);
    EXPECT_EQ(reply.outcome, PushOutcome::kNotCombined);
    EXPECT_NE(reply.message.find(why), std::string::npos) << reply.message;
    EXPECT_EQ(Describe(driver_.core()), before);
  }

  ShardMachineDriver driver_;
};

class HardsyncCompositeTest : public CompositeTest {
 protected:
  HardsyncCompositeTest() : CompositeTest(TestOptions({Policy::kHardsync})) {}
};

TEST_F(CompositeTest, CountsEachPartOfItsWorker) {
  const PushReply reply = Reply(CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)}));

  EXPECT_EQ(reply.outcome, PushOutcome::kApplied);
  EXPECT_EQ(driver_.core().lag().gradients(), 2u);
  EXPECT_EQ(driver_.core().lag().composites(), 1u);
  EXPECT_EQ(driver_.core().lag().workers().at(WorkerId{2}).pushes, 1u);
  EXPECT_EQ(driver_.core().outcomes().at(PushOutcome::kApplied), 2u);
  EXPECT_EQ(driver_.core().examples_applied(), 64u);
}

TEST_F(CompositeTest, TellsAPartThatComesAgainByItself) {
  const Facts part = PushOf(0, 1, 0);
  const PushReply combined = Reply(CompositeOf({part, PushOf(2, 1, 0)}));
  driver_.PublishAll();

  const PushReply again = Reply(part);

  EXPECT_EQ(again.outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(again.first_outcome, PushOutcome::kApplied);
  EXPECT_EQ(again.version, combined.version);
  EXPECT_EQ(decided(), 1u);
  Facts other = part;
  other.checksum += 1;
  EXPECT_EQ(Reply(other).outcome, PushOutcome::kSequenceReused);
}

TEST_F(CompositeTest, CountsNoPartIfOneHasComeByItself) {
  EXPECT_EQ(Reply(PushOf(2, 1, 0)).outcome, PushOutcome::kApplied);

  ExpectNotCombined(CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)}), "worker 2");

  EXPECT_EQ(Reply(PushOf(0, 1, 0)).outcome, PushOutcome::kApplied);
}

TEST_F(CompositeTest, TellsTheWholeThatComesAgain) {
  const Facts composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  const PushReply first = Reply(composite);
  driver_.PublishAll();

  const PushReply again = Reply(composite);

  EXPECT_EQ(again.outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(again.first_outcome, PushOutcome::kApplied);
  EXPECT_EQ(again.version, first.version);
  EXPECT_EQ(decided(), 1u);
  EXPECT_EQ(driver_.core().lag().gradients(), 2u);
  EXPECT_EQ(driver_.core().outcomes().at(PushOutcome::kDuplicate), 2u);
}

TEST_F(CompositeTest, TellsNoWholeOfPartsThatHadOtherAnswers) {
  const Facts composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  Reply(PushOf(0, 1, 0));
  Reply(PushOf(2, 1, 0));
  ExpectNotCombined(composite, "worker 0");
}

TEST_F(CompositeTest, TellsNoWholeOfWhichAPartHadOtherValues) {
  Reply(CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)}));
  Facts other = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  other.header.parts[1].checksum += 1;
  ExpectNotCombined(other, "worker 0");
}

TEST_F(CompositeTest, HasToWaitWhileTheShardHasNoWeights) {
  ShardMachineDriver returning(TestOptions({Policy::kAsync}));
  const Facts composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  const PushAdmission admission = returning.core().OnPushHeader(composite.header);
  ASSERT_TRUE(admission.refusal.has_value());
  EXPECT_EQ(admission.refusal->outcome, PushOutcome::kRetryLater);
}

TEST_F(CompositeTest, CountsNoPartIfOneComesByItselfWhileThePayloadIsOnItsWay) {
  Facts composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  const PushAdmission admission = driver_.core().OnPushHeader(composite.header);
  ASSERT_FALSE(admission.refusal.has_value());
  composite.push = admission.push;
  EXPECT_EQ(Reply(PushOf(2, 1, 0)).outcome, PushOutcome::kApplied);

  const ShardOutput output = driver_.core().OnPush(CallId{77}, composite);

  EXPECT_EQ(output.record->reply.outcome, PushOutcome::kNotCombined);
  EXPECT_FALSE(output.keeps_payload);
  EXPECT_EQ(driver_.core().lag().gradients(), 1u);
}

TEST_F(CompositeTest, EachPartHasTheStalenessOfItsOwnVersion) {
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) Reply(PushOf(3, sequence, sequence - 1));
  driver_.PublishAll();
  const Facts older = PushOf(2, 1, 0);

  Reply(CompositeOf({PushOf(0, 1, 2), older}));

  EXPECT_EQ(driver_.core().lag().workers().at(WorkerId{0}).last, 1u);
  EXPECT_EQ(driver_.core().lag().workers().at(WorkerId{2}).last, 3u);
  EXPECT_EQ(driver_.core().lag().composite_mean(), 2.0);
  const std::vector<Version> bases = {Version{2}, Version{0}};
  EXPECT_EQ(driver_.core().lag().vector_clocks().back().bases, bases);
  driver_.PublishAll();
  EXPECT_EQ(Reply(older).staleness, 3u);
}

TEST(ScaledCompositeTest, PartsThatAreScaledOtherwiseAreNotCombined) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.optimizer.staleness_scaling = StalenessScaling::kPerGradient;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(4));
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    driver.Push(PushOf(3, sequence, sequence - 1));
  }
  driver.PublishAll();

  const PushReply mixed = driver.Push(CompositeOf({PushOf(0, 1, 1), PushOf(2, 1, 0)})).reply;
  const PushReply alike = driver.Push(CompositeOf({PushOf(0, 1, 1), PushOf(2, 1, 1)})).reply;

  EXPECT_EQ(mixed.outcome, PushOutcome::kNotCombined);
  EXPECT_EQ(alike.outcome, PushOutcome::kApplied);
}

TEST_F(CompositeTest, IsForRunsWithAggregators) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.takes_composites = false;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(4));
  const PushReply reply = driver.Push(CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)})).reply;
  EXPECT_EQ(reply.outcome, PushOutcome::kNotCombined);
}

TEST_F(CompositeTest, RefusesAPullThatNoPartMakes) {
  Facts composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  composite.header.pull = true;
  ExpectNotCombined(composite, "pulls");
}

// A guard that blocks holds the round back for the first worker's other gradient. That worker may
// go on, and has to: the second one must not make it wait.
TEST(BlockingCompositeTest, KeepsNoWorkerWaitingForAnother) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.stages.front().consistency.max_staleness = {.action = StalenessGuardSpec::Action::kBlock,
                                                      .bound = 1};
  options.gradients_in_flight = 2;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(3));
  PullRequest other_slot = TrainingPullOf(0);
  other_slot.slot = 1;
  for (const PullRequest& pull : {TrainingPullOf(0), TrainingPullOf(1), other_slot}) {
    driver.Pull(pull);
  }
  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    driver.Push(PushOf(2, sequence, sequence - 1));
    driver.PublishAll();
  }
  const uint64_t decided = Value(driver.core().decided());

  const PushDecision joined = driver.Push(CompositeOf({ExchangeOf(0, 1, 0), ExchangeOf(1, 1, 0)}));

  ASSERT_EQ(Value(driver.core().decided()), decided) << "the round is not held back";
  EXPECT_TRUE(std::holds_alternative<Serve>(*joined.answer));
}

TEST_F(CompositeTest, RefusesPartsThatNameNoMember) {
  ExpectNotCombined(CompositeOf({PushOf(0, 1, 0), PushOf(9, 1, 0)}), "worker 9");
  Facts fenced = PushOf(2, 1, 0);
  fenced.header.identity.incarnation = Incarnation{1};
  ExpectNotCombined(CompositeOf({PushOf(0, 1, 0), fenced}), "worker 2");
}

TEST_F(CompositeTest, RefusesValuesThatAreNotFinite) {
  Facts composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  composite.is_finite = false;
  ExpectNotCombined(composite, "NaN");
}

TEST_F(CompositeTest, RefusesPartsThatDoNotAddUp) {
  Facts composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  composite.header.examples += 1;
  ExpectNotCombined(composite, "examples");
  composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  std::swap(composite.header.parts[0], composite.header.parts[1]);
  ExpectNotCombined(composite, "order");
  composite.header.parts[0] = composite.header.parts[1];
  ExpectNotCombined(composite, "order");
}

TEST_F(CompositeTest, ReleasesAllItsPartsWhenItIsAbandoned) {
  const Facts composite = CompositeOf({PushOf(0, 1, 0), PushOf(2, 1, 0)});
  for (int i = 0; i < 3; ++i) {
    const PushAdmission admission = driver_.core().OnPushHeader(composite.header);
    ASSERT_FALSE(admission.refusal.has_value()) << admission.refusal->message;
    driver_.core().OnPushAbandoned(admission.push, composite.header);
  }
  EXPECT_EQ(driver_.core().bytes_queued(), 0u);
  driver_.core().CheckInvariants();
}

TEST(SoftsyncCompositeTest, RoundsCountPartsAndTakeTheirMean) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(3));
  driver.Push(CompositeOf({PushOf(0, 1, 0), PushOf(1, 1, 0)}), 3);
  EXPECT_EQ(driver.core().decided(), Version{0});

  driver.Push(PushOf(2, 1, 0), 6);

  EXPECT_EQ(driver.core().decided(), Version{1});
  EXPECT_NEAR(driver.weights().back(), -(2 * 3 + 6) / 3.0, 1e-6);
  EXPECT_EQ(driver.core().lag().vector_clocks().back().bases.size(), 3u);
}

TEST_F(HardsyncCompositeTest, StandsForItsWorkersInARound) {
  Facts small = PushOf(1, 1, 0);
  small.header.examples = 8;
  driver_.Push(PushOf(3, 1, 0), 5);
  driver_.Push(CompositeOf({PushOf(0, 1, 0), small}, kWeighsExamples), 10);
  EXPECT_EQ(driver_.LackedMembers(), std::vector<WorkerId>{WorkerId{2}});

  driver_.Push(PushOf(2, 1, 0), 20);

  EXPECT_EQ(decided(), 1u);
  EXPECT_EQ(driver_.LastFolded(), "0 2 3");
  EXPECT_NEAR(driver_.weights().back(), -(40 * 10 + 32 * 20 + 32 * 5) / 104.0, 1e-6);
}

TEST_F(HardsyncCompositeTest, TellsEachWorkerItsNextMiniBatch) {
  for (uint32_t worker = 0; worker < 4; ++worker) driver_.Pull(TrainingPullOf(worker));
  const PushDecision waits =
      driver_.Push(CompositeOf({ExchangeOf(0, 1, 0), ExchangeOf(2, 1, 0)}, kWeighsExamples));
  const CallId call = std::get<Park>(*waits.answer).call;
  driver_.Push(PushOf(1, 1, 0));
  driver_.Push(PushOf(3, 1, 0));
  driver_.PublishAll();

  const std::vector<PartAnswer>& parts = driver_.released().at(call).parts;

  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].work->batches.first, 4u);
  EXPECT_EQ(parts[1].work->batches.first, 6u);
}

TEST_F(HardsyncCompositeTest, GoesOnWithItsRoundWhenItComesAgain) {
  for (uint32_t worker = 0; worker < 4; ++worker) driver_.Pull(TrainingPullOf(worker));
  const Facts composite = CompositeOf({ExchangeOf(0, 1, 0), ExchangeOf(2, 1, 0)}, kWeighsExamples);
  driver_.Push(composite);
  const PushDecision again = driver_.Push(composite);
  const CallId call = std::get<Park>(*again.answer).call;
  driver_.Push(PushOf(1, 1, 0));
  driver_.Push(PushOf(3, 1, 0));
  driver_.PublishAll();

  const std::vector<PartAnswer>& parts = driver_.released().at(call).parts;

  EXPECT_EQ(again.reply.first_outcome, PushOutcome::kApplied);
  EXPECT_EQ(decided(), 1u);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].work->batches.first, 4u);
  EXPECT_EQ(parts[1].work->batches.first, 6u);
}

TEST_F(HardsyncCompositeTest, IsNotTakenOnceItsRoundIsClosed) {
  for (uint32_t worker = 0; worker < 4; ++worker) driver_.Push(PushOf(worker, 1, 0));
  ExpectNotCombined(CompositeOf({PushOf(0, 2, 0), PushOf(1, 2, 0)}, kWeighsExamples), "worker 0");
}

TEST_F(HardsyncCompositeTest, IsNotTakenIfItsPartsAreWeighedOtherwise) {
  ExpectNotCombined(CompositeOf({PushOf(0, 1, 0), PushOf(1, 1, 0)}), "weighs");
}

TEST(BoundedCompositeTest, IsNotTakenBeyondTheStalenessBound) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.stages.front().consistency.max_staleness = {.action = StalenessGuardSpec::Action::kReject,
                                                      .bound = 1};
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(4));
  for (uint64_t sequence = 1; sequence <= 2; ++sequence) driver.Push(PushOf(3, sequence, 0));
  driver.PublishAll();

  const PushReply reply = driver.Push(CompositeOf({PushOf(0, 1, 0), PushOf(1, 1, 0)})).reply;

  EXPECT_EQ(reply.outcome, PushOutcome::kNotCombined);
  EXPECT_EQ(driver.Push(PushOf(0, 1, 0)).reply.outcome, PushOutcome::kTooStale);
}

TEST_F(CompositeTest, LacksTheTensorsThatNoneOfItsPartsHasAGradientFor) {
  Facts first = PushOf(0, 1, 0), second = PushOf(2, 1, 0);
  for (const size_t tensor : {0, 5}) first.header.trailer.absent.Add(tensor);
  for (const size_t tensor : {5, 9}) second.header.trailer.absent.Add(tensor);
  const Facts composite = CompositeOf({first, second});

  EXPECT_EQ(Reply(composite).outcome, PushOutcome::kApplied);

  TensorSet fifth;
  fifth.Add(5);
  EXPECT_EQ(driver_.updates().back().update.absent, fifth);
}

TEST_F(CompositeTest, HeadersOfPartsAreThoseOfTheirWorkers) {
  Facts first = ExchangeOf(0, 3, 5);
  first.header.batches = {{7, 2}};
  first.header.clock = WorkerClock{9};
  first.header.trailer.loss = 0.5f;
  const Facts composite = CompositeOf({PushOf(2, 1, 5), first});

  ASSERT_EQ(composite.header.parts.size(), 2u);
  EXPECT_EQ(HeaderOf(composite.header, composite.header.parts[0]), first.header);
  EXPECT_EQ(HeaderOf(composite.header, composite.header.parts[1]), PushOf(2, 1, 5).header);
  EXPECT_EQ(FaultOfParts(composite.header), "");
}

}  // namespace
}  // namespace slipstream
