#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "tests/server/core/shard/published_shard.h"
#include "tests/support/shard_machine_driver.h"

// Examples of what a shard promises to readers who are not members: which version answers which
// pull, whose pull is ended because its version cannot be kept, and when workers wait for readers
// (readers.on_lag: wait). Beside them, shard_calls.h says when each call is answered.

namespace slipstream {
namespace {

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

TEST(ShardReadersTest, TheReadersOfTheOldestOfThreeVersionsThatAreNotKeptHaveLagged) {
  PublishedShard shard(Publishing(3));
  shard.Pull(1);
  shard.Pull(2);
  for (uint64_t version = 1; version <= 3; ++version) {
    EXPECT_EQ(LaggedIn(shard.Publish(version)), Calls{});
    EXPECT_EQ(HeaderOf(shard.Pull(version + 2)).version, Version{version});
  }
  EXPECT_EQ(LaggedIn(shard.Publish(4)), Calls{}) << "two versions may be read that are not kept";

  EXPECT_EQ(LaggedIn(shard.Publish(5)), (Calls{1, 2}));
  EXPECT_EQ(LaggedIn(shard.Publish(6)), Calls{3}) << "those before are not named again";
  for (uint64_t clock = 7; clock <= 20; ++clock) {
    EXPECT_EQ(LaggedIn(shard.Publish(clock)), Calls{});
  }

  EXPECT_EQ(shard.core().pulls_under_way(), 5u) << "the calls have not ended yet";
  for (uint64_t call = 1; call <= 5; ++call) EXPECT_EQ(AnswersOf(shard.Done(call)), "");
  EXPECT_EQ(shard.core().pulls_under_way(), 0u);
}

TEST(ShardReadersTest, APullThatTrainsIsGivenTheNewestVersionAlone) {
  ShardMachine::Options options = TestOptions({PolicyKind::kAsync});
  options.versions_kept = 3;
  PublishedShard shard(options);
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

constexpr uint64_t kReader = 77;

/// Returns the number of answers to pushes.
size_t PushesAnswered(const ShardOutput& output) {
  size_t count = 0;
  for (const ShardAnswer& answer : output.answers) count += answer.push.has_value() ? 1 : 0;
  return count;
}

TEST(ShardReaderPaceTest, APublisherWaitsOnceAReaderIsAsFarBehindAsItMayBe) {
  PublishedShard shard(Publishing(2));
  shard.core().OnAwaitedReaders({{kReader, 2}});
  const PullRequest read = {.shard_map = TestPlan().shard_map, .reader = kReader};

  EXPECT_EQ(PushesAnswered(shard.Publish(1)), 1u) << "the reader is one version behind";
  EXPECT_EQ(PushesAnswered(shard.Publish(2)), 0u) << "a further version would be one too many";
  EXPECT_EQ(shard.core().published(), Version{2}) << "what was pushed is published all the same";

  EXPECT_EQ(PushesAnswered(shard.Pull(1, read)), 1u) << "the reader has gone on";
}

TEST(ShardReaderPaceTest, OtherShardsHoldNobodyBack) {
  ShardMachine::Options options = Publishing(2);
  options.shard = ShardId{1};
  PublishedShard shard(options);
  shard.core().OnAwaitedReaders({{kReader, 1}});
  for (uint64_t clock = 1; clock <= 5; ++clock) EXPECT_EQ(PushesAnswered(shard.Publish(clock)), 1u);
}

}  // namespace
}  // namespace slipstream
