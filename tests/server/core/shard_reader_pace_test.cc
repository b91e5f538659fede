#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "tests/server/core/published_shard.h"
#include "tests/support/shard_machine_driver.h"

// Tests of workers that wait for readers (readers.on_lag: wait): the answer by which a worker goes
// on is held back at shard 0.

namespace slipstream {
namespace {

constexpr uint64_t kReader = 77;
constexpr uint64_t kOther = 78;

/// Lets a reader take the newest version, and ends the transfer.
ShardOutput Read(PublishedShard& shard, uint64_t call, uint64_t reader = kReader) {
  ShardOutput output = shard.Pull(call, {.shard_map = TestPlan().shard_map, .reader = reader});
  shard.Done(call);
  return output;
}

/// Returns the number of answers to pushes.
size_t PushesAnswered(const ShardOutput& output) {
  size_t count = 0;
  for (const ShardAnswer& answer : output.answers) count += answer.push.has_value() ? 1 : 0;
  return count;
}

TEST(ShardReaderPaceTest, APublisherWaitsOnceAReaderIsAsFarBehindAsItMayBe) {
  PublishedShard shard(Publishing(2));
  shard.core().OnAwaitedReaders({{kReader, 2}});

  EXPECT_EQ(PushesAnswered(shard.Publish(1)), 1u) << "the reader is one version behind";
  EXPECT_EQ(PushesAnswered(shard.Publish(2)), 0u) << "a further version would be one too many";
  EXPECT_EQ(shard.core().published(), Version{2}) << "what was pushed is published all the same";

  EXPECT_EQ(PushesAnswered(Read(shard, 1)), 1u) << "the reader has gone on";
}

TEST(ShardReaderPaceTest, TheSlowestReaderCounts) {
  PublishedShard shard(Publishing(2));
  shard.core().OnAwaitedReaders({{kReader, 1}, {kOther, 3}});

  EXPECT_EQ(PushesAnswered(shard.Publish(1)), 0u);
  EXPECT_EQ(PushesAnswered(Read(shard, 1, kOther)), 0u) << "the other is still at version 0";
  EXPECT_EQ(PushesAnswered(Read(shard, 2, kReader)), 1u);
}

TEST(ShardReaderPaceTest, AReaderThatIsGoneIsNotWaitedFor) {
  PublishedShard shard(Publishing(2));
  shard.core().OnAwaitedReaders({{kReader, 1}});
  EXPECT_EQ(PushesAnswered(shard.Publish(1)), 0u);

  EXPECT_EQ(PushesAnswered(shard.core().OnAwaitedReaders({})), 1u);
  EXPECT_EQ(PushesAnswered(shard.Publish(2)), 1u);
}

TEST(ShardReaderPaceTest, AReaderThatComesIsWaitedForFromTheVersionThatIsThere) {
  PublishedShard shard(Publishing(2));
  for (uint64_t clock = 1; clock <= 10; ++clock) shard.Publish(clock);

  EXPECT_EQ(PushesAnswered(shard.core().OnAwaitedReaders({{kReader, 2}})), 0u);
  EXPECT_EQ(PushesAnswered(shard.Publish(11)), 1u);
  EXPECT_EQ(PushesAnswered(shard.Publish(12)), 0u);
}

TEST(ShardReaderPaceTest, ReadersOfWhomTheCoordinatorDoesNotKnowAreNotWaitedFor) {
  PublishedShard shard(Publishing(2));
  Read(shard, 1, kOther);
  EXPECT_EQ(PushesAnswered(shard.Publish(1)), 1u);
  shard.core().OnAwaitedReaders({{kReader, 1}});
  EXPECT_EQ(PushesAnswered(shard.Publish(2)), 0u);
  EXPECT_EQ(PushesAnswered(Read(shard, 2, kOther)), 0u) << "and count for nobody else";
}

TEST(ShardReaderPaceTest, AReaderThatAsksForTheNextVersionGetsItWhileThePublisherWaits) {
  PublishedShard shard(Publishing(2));
  shard.core().OnAwaitedReaders({{kReader, 1}});
  shard.Publish(1);
  const PullRequest next = {
      .shard_map = TestPlan().shard_map, .min_version = Version{1}, .reader = kReader};

  const ShardOutput output = shard.Pull(1, next);

  ASSERT_EQ(output.answers.size(), 2u) << "the reader's answer, and with it the publisher's";
  EXPECT_EQ(output.answers[0].weights->version, Version{1});
}

TEST(ShardReaderPaceTest, APublisherGoesOnWhenTheReaderIsSentWhatItHadAskedForBefore) {
  PublishedShard shard(Publishing(2));
  shard.core().OnAwaitedReaders({{kReader, 1}});
  EXPECT_TRUE(shard.Push(shard.NextPush(1)).answers.empty());
  const PullRequest next = {
      .shard_map = TestPlan().shard_map, .min_version = Version{1}, .reader = kReader};
  EXPECT_TRUE(shard.Pull(1, next).answers.empty()) << "the version is not published yet";

  EXPECT_EQ(shard.PublishNext().answers.size(), 2u);
}

TEST(ShardReaderPaceTest, OtherShardsHoldNobodyBack) {
  ShardMachine::Options options = Publishing(2);
  options.shard = ShardId{1};
  PublishedShard shard(options);
  shard.core().OnAwaitedReaders({{kReader, 1}});
  for (uint64_t clock = 1; clock <= 5; ++clock) EXPECT_EQ(PushesAnswered(shard.Publish(clock)), 1u);
}

TEST(ShardReaderPaceTest, WorkersUnderHardsyncWaitForTheirNextRound) {
  PublishedShard shard(TestOptions({ConsistencySpec::Policy::kHardsync}));
  shard.core().OnAwaitedReaders({{kReader, 1}});
  ShardMachine::PushFacts push = shard.NextPush(1);
  push.header.pull = true;
  shard.Push(push);
  EXPECT_EQ(PushesAnswered(shard.PublishNext()), 0u);
  EXPECT_EQ(PushesAnswered(Read(shard, 1)), 1u);
}

TEST(ShardReaderPaceTest, NoReaderIsEverFurtherBehindThanItMayBe) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&random](uint64_t end) { return random() % end; };
    const uint64_t lag_max = 1 + below(4);
    PublishedShard shard(Publishing(2));
    shard.core().OnAwaitedReaders({{kReader, lag_max}});
    uint64_t clock = 0;
    uint64_t versions_read = 0;
    uint64_t next_held = 0;
    uint64_t held = 0;       // The version that the reader has taken.
    uint64_t under_way = 0;  // The call of its pull, once it was sent a version.
    bool asks = false;
    bool is_waiting = false;  // The publisher, for its answer.
    const auto take = [&](const ShardOutput& output) {
      for (const ShardAnswer& answer : output.answers) {
        if (answer.push.has_value()) is_waiting = false;
        if (answer.push.has_value()) continue;
        asks = false;
        under_way = Value(answer.call);
        next_held = Value(answer.weights->version);
      }
    };
    for (uint64_t event = 1; event <= 400; ++event) {
      switch (below(4)) {
        case 0:
          if (is_waiting) break;
          is_waiting = true;
          take(shard.Push(shard.NextPush(++clock)));
          break;
        case 1:
          if (shard.core().published() < shard.core().decided()) take(shard.PublishNext());
          break;
        case 2:
          if (asks || under_way != 0) break;
          asks = true;
          take(shard.Pull(event, {.shard_map = TestPlan().shard_map,
                                  .min_version = Version{held + 1},
                                  .reader = kReader}));
          break;
        default:
          if (under_way == 0) break;
          held = next_held;
          ++versions_read;
          take(shard.Done(std::exchange(under_way, 0)));
          ASSERT_LE(Value(shard.core().published()) - held, lag_max);
      }
      const uint64_t sent = under_way != 0 ? next_held : held;
      const bool is_published = shard.core().published() == shard.core().decided();
      const bool is_too_far = Value(shard.core().decided()) - sent >= lag_max;
      ASSERT_EQ(is_waiting, clock > 0 && (!is_published || is_too_far));
    }
    EXPECT_GT(versions_read, 10u);
  }
}

}  // namespace
}  // namespace slipstream
