#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "tests/server/core/published_shard.h"
#include "tests/support/shard_machine_driver.h"

// Tests of what a shard promises to readers who are not members: which version answers which pull,
// and whose pull is ended because its version cannot be kept.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

/// Returns options of a shard to which workers push gradients.
ShardMachine::Options Training(Policy policy, uint32_t versions_kept) {
  ShardMachine::Options options = TestOptions({policy});
  options.versions_kept = versions_kept;
  return options;
}

/// Returns the stamp of the first publisher's weights.
Stamp FirstStamp(uint64_t clock) { return {.publisher = Incarnation{1}, .number = clock}; }

/// Returns the answers with weights and the refusals as "1: version 4, 2: LAGGED".
std::string AnswersOf(const ShardOutput& output) {
  std::string text;
  for (const ShardAnswer& answer : output.answers) {
    if (!answer.weights.has_value() && !answer.refusal.has_value()) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(Value(answer.call)) + ": ";
    if (answer.weights.has_value()) {
      text += "version " + std::to_string(Value(answer.weights->version));
    } else {
      text += answer.refusal == PullRefusal::kLagged ? "LAGGED" : "another refusal";
    }
  }
  return text;
}

/// Returns the header of the only answer.
WeightsHeader HeaderOf(const ShardOutput& output) {
  const bool is_served = output.answers.size() == 1 && output.answers[0].weights.has_value();
  EXPECT_TRUE(is_served) << AnswersOf(output);
  return is_served ? *output.answers[0].weights : WeightsHeader{};
}

using Calls = std::multiset<uint64_t>;

Calls LaggedIn(const ShardOutput& output) {
  Calls calls;
  for (const CallId call : output.lagged) calls.insert(Value(call));
  return calls;
}

/// Otherwise a reader who asks two shards for one stamp might get a mixture of two publications.
TEST(ShardReadersTest, NoPublicationHasTheStampOfAnother) {
  PublishedShard shard(Publishing(2));
  shard.Publish(17);
  for (const uint64_t clock : {16, 17}) {
    ShardMachine::PushFacts again = shard.NextPush(clock);
    again.header.sequence = Sequence{2};

    const PushAdmission admission = shard.core().OnPushHeader(again.header);

    ASSERT_TRUE(admission.refusal.has_value());
    EXPECT_EQ(admission.refusal->outcome, PushOutcome::kShapeMismatch);
    EXPECT_EQ(admission.refusal->version, Version{1});
  }
}

TEST(ShardReadersTest, AVersionHasTheStampAndTheLabelOfItsPublication) {
  PublishedShard shard(Publishing(1));
  const WeightsHeader initial = HeaderOf(shard.Pull(1));
  EXPECT_EQ(initial.stamp, Stamp{});
  EXPECT_EQ(initial.label, 0u);

  shard.Publish(17, 4711);
  const WeightsHeader first = HeaderOf(shard.Pull(2));
  EXPECT_EQ(first.version, Version{1});
  EXPECT_EQ(first.stamp, FirstStamp(17));
  EXPECT_EQ(first.label, 4711u);
  shard.Done(1);
  shard.Done(2);

  shard.Restart(Incarnation{9});
  shard.Publish(3, 12);
  const WeightsHeader second = HeaderOf(shard.Pull(3));
  EXPECT_EQ(second.version, Version{2});
  EXPECT_EQ(second.stamp, (Stamp{.publisher = Incarnation{9}, .number = 3}));
  EXPECT_EQ(second.label, 12u);
}

TEST(ShardReadersTest, WholeWeightsAreNeverStaleWhateverTheirBase) {
  ShardMachine::Options options = Publishing(1);
  options.stages.front().consistency.max_staleness = {.action = StalenessGuardSpec::Action::kReject,
                                                      .bound = 0};
  PublishedShard shard(options);
  for (uint64_t clock = 1; clock <= 4; ++clock) {
    ShardMachine::PushFacts push = shard.NextPush(clock);
    push.header.base = Version{};

    const PushReply reply = shard.Push(push).record->reply;

    EXPECT_EQ(Name(reply.outcome), Name(PushOutcome::kApplied));
    EXPECT_EQ(reply.version, Version{clock});
    EXPECT_EQ(reply.staleness, 0u);
  }
  EXPECT_EQ(shard.core().lag().max(), 0u);
}

TEST(ShardReadersTest, EachVersionThatIsKeptIsGivenToWhoAsksForItsStamp) {
  PublishedShard shard(Publishing(3));
  shard.Publish(11);
  EXPECT_EQ(AnswersOf(shard.Pull(1, Stamp{})), "1: version 0") << "there are no more versions yet";
  shard.Done(1);
  for (uint64_t clock = 12; clock <= 14; ++clock) shard.Publish(clock, 100 + clock);

  for (uint64_t clock = 14; clock >= 12; --clock) {
    const WeightsHeader header = HeaderOf(shard.Pull(clock, FirstStamp(clock)));
    EXPECT_EQ(header.version, Version{clock - 10});
    EXPECT_EQ(header.stamp, FirstStamp(clock));
    EXPECT_EQ(header.label, 100 + clock);
  }

  EXPECT_EQ(AnswersOf(shard.Pull(2, FirstStamp(11))), "2: LAGGED");
  EXPECT_EQ(AnswersOf(shard.Pull(3, Stamp{})), "3: LAGGED");
  EXPECT_EQ(AnswersOf(shard.Pull(4)), "4: version 4");
}

TEST(ShardReadersTest, AReaderOfAFutureStateIsAnsweredOnceThatIsPublished) {
  PublishedShard shard(Publishing(3));
  EXPECT_EQ(AnswersOf(shard.Pull(1, FirstStamp(12))), "");
  EXPECT_EQ(AnswersOf(shard.Pull(2, FirstStamp(13))), "");
  EXPECT_EQ(AnswersOf(shard.Publish(11)), "");
  EXPECT_EQ(AnswersOf(shard.Push(shard.NextPush(12))), "") << "it is not published yet";
  EXPECT_FALSE(shard.core().ReadersWaitForPlace());

  EXPECT_EQ(AnswersOf(shard.PublishNext()), "1: version 2");

  EXPECT_TRUE(shard.core().OnCancelled(CallId{2}));
  EXPECT_EQ(AnswersOf(shard.Publish(13)), "") << "a cancelled call has no answer";
}

TEST(ShardReadersTest, AStateOfAPublisherThatDiedHalfWayIsRefusedWhenTheNextOneGoesOn) {
  PublishedShard shard(Publishing(3));
  shard.Publish(11);
  EXPECT_EQ(AnswersOf(shard.Pull(1, FirstStamp(12))), "");
  EXPECT_EQ(AnswersOf(shard.Restart(Incarnation{9})), "") << "nothing newer is there yet";

  EXPECT_EQ(AnswersOf(shard.Publish(1)), "1: LAGGED");

  EXPECT_EQ(AnswersOf(shard.Pull(2, FirstStamp(12))), "2: LAGGED");
  EXPECT_EQ(AnswersOf(shard.Pull(3, FirstStamp(11))), "3: version 1") << "it is kept";
}

TEST(ShardReadersTest, AReaderOfAStateThatCannotComeAnyMoreIsRefused) {
  for (const Phase phase : {Phase::kEvaluating, Phase::kFailed}) {
    SCOPED_TRACE(Name(phase));
    PublishedShard shard(Publishing(3));
    shard.Publish(11);
    EXPECT_EQ(AnswersOf(shard.Pull(1, FirstStamp(12))), "");

    EXPECT_EQ(AnswersOf(shard.core().OnPhase(phase, Version{})), "1: LAGGED");

    EXPECT_EQ(AnswersOf(shard.Pull(2, FirstStamp(12))), "2: LAGGED");
    EXPECT_EQ(AnswersOf(shard.Pull(3, FirstStamp(11))), "3: version 1");
    EXPECT_EQ(shard.core().waiting(), 0u);
  }
}

TEST(ShardReadersTest, WhereWorkersAreInStepAStampIsTheNumberOfTheVersion) {
  PublishedShard shard(Training(Policy::kHardsync, 3));
  EXPECT_EQ(HeaderOf(shard.Pull(1)).stamp, Stamp{});
  EXPECT_EQ(AnswersOf(shard.Pull(2, Stamp{.number = 3})), "");
  shard.Publish(71);
  EXPECT_EQ(HeaderOf(shard.Pull(3)).stamp, Stamp{.number = 1});
  shard.Publish(72);

  EXPECT_EQ(AnswersOf(shard.Publish(73)), "2: version 3");

  EXPECT_EQ(AnswersOf(shard.Pull(4, Stamp{.number = 1})), "4: version 1");
  EXPECT_EQ(AnswersOf(shard.Pull(5, Stamp{})), "5: LAGGED");
}

TEST(ShardReadersTest, VersionsOfGradientsThatEachShardTakesByItselfHaveNoStamp) {
  PublishedShard shard(Training(Policy::kAsync, 1));
  EXPECT_EQ(HeaderOf(shard.Pull(1)).stamp, Stamp{});
  EXPECT_EQ(HeaderOf(shard.Pull(2, Stamp{})).version, Version{0});
  EXPECT_EQ(AnswersOf(shard.Pull(3, FirstStamp(11))), "");

  EXPECT_EQ(AnswersOf(shard.Publish(11)), "3: LAGGED");

  EXPECT_EQ(HeaderOf(shard.Pull(4)).stamp, std::nullopt);
  EXPECT_EQ(AnswersOf(shard.Pull(5, FirstStamp(11))), "5: LAGGED");
  EXPECT_EQ(AnswersOf(shard.Pull(6, Stamp{.number = 1})), "6: LAGGED");
  EXPECT_EQ(AnswersOf(shard.Pull(7, FirstStamp(99))), "7: LAGGED");
  EXPECT_EQ(AnswersOf(shard.Pull(8, Stamp{})), "8: LAGGED");
}

TEST(ShardReadersTest, WithOneVersionKeptAReaderWaitsForAPlaceAndNobodyLags) {
  PublishedShard shard(Publishing(1));
  EXPECT_EQ(AnswersOf(shard.Pull(1)), "1: version 0");
  EXPECT_EQ(AnswersOf(shard.Pull(2)), "2: version 0") << "readers of one version share it";
  shard.Publish(1);
  EXPECT_EQ(AnswersOf(shard.Pull(3)), "3: version 1");
  shard.Publish(2);
  EXPECT_EQ(AnswersOf(shard.Pull(4)), "");
  EXPECT_TRUE(shard.core().ReadersWaitForPlace());
  for (uint64_t clock = 3; clock <= 20; ++clock) {
    const ShardOutput output = shard.Publish(clock);
    EXPECT_EQ(AnswersOf(output), "");
    EXPECT_EQ(LaggedIn(output), Calls{});
  }

  EXPECT_EQ(AnswersOf(shard.Done(1)), "") << "another reads that version still";
  EXPECT_EQ(AnswersOf(shard.Done(2)), "4: version 20");
  EXPECT_FALSE(shard.core().ReadersWaitForPlace());
}

TEST(ShardReadersTest, AReaderWaitsWhileAsManyPullAsMay) {
  ShardMachine::Options options = Publishing(3);
  options.reader_pulls_max = 2;
  PublishedShard shard(options);
  EXPECT_EQ(AnswersOf(shard.Pull(1)), "1: version 0");
  EXPECT_EQ(AnswersOf(shard.Pull(2)), "2: version 0");

  EXPECT_EQ(AnswersOf(shard.Pull(3)), "");
  EXPECT_TRUE(shard.core().ReadersWaitForPlace());

  EXPECT_EQ(AnswersOf(shard.Done(1)), "3: version 0");
}

/// Returns a shard that keeps 3 versions, of which the newest is version 4. Calls 1 and 2 read
/// version 0; 3, 4 and 5 read versions 1, 2 and 3.
PublishedShard ShardOfSlowReaders() {
  PublishedShard shard(Publishing(3));
  shard.Pull(1);
  shard.Pull(2);
  for (uint64_t version = 1; version <= 3; ++version) {
    EXPECT_EQ(LaggedIn(shard.Publish(version)), Calls{});
    EXPECT_EQ(HeaderOf(shard.Pull(version + 2)).version, Version{version});
  }
  EXPECT_EQ(LaggedIn(shard.Publish(4)), Calls{}) << "two versions may be read that are not kept";
  return shard;
}

TEST(ShardReadersTest, TheReadersOfTheOldestOfThreeVersionsThatAreNotKeptHaveLagged) {
  PublishedShard shard = ShardOfSlowReaders();

  EXPECT_EQ(LaggedIn(shard.Publish(5)), (Calls{1, 2}));
  EXPECT_EQ(LaggedIn(shard.Publish(6)), Calls{3}) << "those before are not named again";
  for (uint64_t clock = 7; clock <= 20; ++clock) {
    EXPECT_EQ(LaggedIn(shard.Publish(clock)), Calls{});
  }

  EXPECT_EQ(shard.core().pulls_under_way(), 5u) << "the calls have not ended yet";
  for (uint64_t call = 1; call <= 5; ++call) EXPECT_EQ(AnswersOf(shard.Done(call)), "");
  EXPECT_EQ(shard.core().pulls_under_way(), 0u);
}

TEST(ShardReadersTest, AReaderThatWaitsTakesThePlaceOfOnesThatHaveLagged) {
  PublishedShard shard = ShardOfSlowReaders();
  EXPECT_EQ(AnswersOf(shard.Pull(6)), "") << "four versions are read already";
  EXPECT_EQ(AnswersOf(shard.Pull(7, FirstStamp(3))), "7: version 3")
      << "one of these can be shared";

  EXPECT_EQ(AnswersOf(shard.Publish(5)), "6: version 5");
}

TEST(ShardReadersTest, AReaderThatWaitsForAPlaceTooLongHasLagged) {
  PublishedShard shard(Publishing(1));
  shard.Pull(1);
  shard.Publish(1);
  shard.Pull(2);
  shard.Publish(2);
  EXPECT_EQ(AnswersOf(shard.Pull(3, FirstStamp(2))), "");
  EXPECT_TRUE(shard.core().ReadersWaitForPlace());

  EXPECT_EQ(AnswersOf(shard.Publish(3)), "3: LAGGED");
}

TEST(ShardReadersTest, APullThatTrainsIsGivenTheNewestVersionAlone) {
  PublishedShard shard(Training(Policy::kAsync, 3));
  for (uint64_t clock = 1; clock <= 2; ++clock) shard.Publish(clock);
  EXPECT_EQ(AnswersOf(shard.Pull(1, Stamp{})), "1: version 0");

  const ShardOutput output = shard.Pull(2, TrainingPullOf(0, 0, 3));

  const WeightsHeader header = HeaderOf(output);
  EXPECT_EQ(header.version, Version{2});
  EXPECT_EQ(header.stamp, std::nullopt);
  EXPECT_EQ(output.answers[0].trainers.front(), WorkerId{0});
  ShardMachine::PushFacts exchange = shard.NextPush(3);
  exchange.header.pull = true;
  EXPECT_EQ(AnswersOf(shard.Push(exchange)), "");
  EXPECT_EQ(HeaderOf(shard.PublishNext()).version, Version{3});
}

TEST(ShardReadersTest, AMemberThatReadsNeedsNoPlaceAmongTheOthers) {
  PublishedShard shard = ShardOfSlowReaders();
  PullRequest request = {.shard_map = TestPlan().shard_map, .exact = FirstStamp(4)};
  EXPECT_EQ(AnswersOf(shard.Pull(6, request)), "");
  request.identity = shard.NextPush(5).header.identity;

  EXPECT_EQ(AnswersOf(shard.Pull(7, request)), "7: version 4");
}

}  // namespace
}  // namespace slipstream
