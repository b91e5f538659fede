#include "worker/core/worker_session.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

#include "tests/worker/core/shard_answers.h"

namespace slipstream {
namespace {

using Action = WorkerCore::Action;
using ComputeBatches = WorkerCore::ComputeBatches;
using ExcuseShards = WorkerCore::ExcuseShards;

constexpr auto kCompute = RoundWork::Kind::kCompute;

/// A worker in rounds of two shards, which has pushed mini-batch 4 of round 1 to both.
class RoundSessionTest : public testing::Test {
 protected:
  RoundSessionTest() {
    for (const ShardId shard : {kShard0, kShard1}) {
      EXPECT_TRUE(session_.OnPulled(shard, 0, WeightsOf(shard, 1, 4)).ok());
    }
    EXPECT_EQ(session_.Next(0), Action(ComputeBatches{{{4}}, true}));
    session_.BeginPush(0, {.batches = {{4}}, .examples = 8});
    session_.SendTo(0, session_.unsent(0));
    for (const ShardId shard : {kShard0, kShard1}) session_.BeginExchange(shard, 0);
  }

  /// Weights of `version`; shard 0's name a mini-batch.
  static WeightsHeader WeightsOf(ShardId shard, uint64_t version, uint64_t batch) {
    if (shard != kShard0) return Weights(version);
    return Weights(version, RoundWork{.kind = kCompute, .batches = {batch}});
  }

  bool Answer(ShardId shard, PushOutcome outcome, uint64_t version, uint64_t batch) {
    const absl::StatusOr<bool> revokes = session_.OnAnswer(
        shard, {.push = Reply(outcome), .weights = WeightsOf(shard, version, batch)});
    EXPECT_TRUE(revokes.ok()) << revokes.status();
    return revokes.value_or(false);
  }

  WorkerSession session_{{.shard_map = 7, .core = {.shards = 2, .in_step = true}}};
};

TEST_F(RoundSessionTest, GoesOnOnceAllShardsHaveAnsweredWhileWeightsAreOnTheirWay) {
  Answer(kShard0, PushOutcome::kApplied, 2, 8);
  EXPECT_EQ(session_.Next(0), std::nullopt);

  Answer(kShard1, PushOutcome::kApplied, 2, 8);

  EXPECT_EQ(session_.Next(0), Action(ComputeBatches{{{8}}, true}));
}

TEST_F(RoundSessionTest, AnAnswerGivenAgainRevokesWeightsOnlyIfItBringsOthers) {
  Answer(kShard0, PushOutcome::kApplied, 2, 8);
  EXPECT_FALSE(Answer(kShard0, PushOutcome::kDuplicate, 2, 8));
  EXPECT_TRUE(Answer(kShard0, PushOutcome::kDuplicate, 3, 12));

  PushReply of_new_generation = Reply(PushOutcome::kFutureVersion);
  of_new_generation.generation = Generation{1};
  const absl::StatusOr<bool> revokes = session_.OnAnswer(kShard0, {.push = of_new_generation});
  ASSERT_TRUE(revokes.ok()) << revokes.status();
  EXPECT_TRUE(*revokes) << "they are lost with the shard's generation";
}

// Both answers broke off, and one shard has been heard again. The other may have gone on, too: a
// push without values would excuse the worker from a round that it owes a gradient.
TEST_F(RoundSessionTest, NoShardIsTakenToBeBehindWhileItIsAskedAgain) {
  Answer(kShard0, PushOutcome::kApplied, 2, 8);
  Answer(kShard1, PushOutcome::kApplied, 2, 8);
  Answer(kShard0, PushOutcome::kDuplicate, 3, 12);
  EXPECT_EQ(session_.Next(0), std::nullopt);

  Answer(kShard1, PushOutcome::kDuplicate, 3, 12);

  EXPECT_EQ(session_.Next(0), Action(ComputeBatches{{{12}}, true}));
}

TEST_F(RoundSessionTest, AShardThatIsBehindAfterAllIsExcused) {
  Answer(kShard0, PushOutcome::kApplied, 2, 8);
  Answer(kShard1, PushOutcome::kApplied, 2, 8);
  Answer(kShard0, PushOutcome::kDuplicate, 3, 12);

  session_.OnExchangeOver(kShard1, true);

  EXPECT_EQ(session_.Next(0), Action(ExcuseShards{{kShard1}}));
}

TEST_F(RoundSessionTest, WeightsHaveLandedOnceTheirExchangeIsOver) {
  session_.TakeLanded();
  Answer(kShard0, PushOutcome::kApplied, 2, 8);
  EXPECT_EQ(session_.TakeLanded(), std::set<ShardId>());

  session_.OnExchangeOver(kShard0, true);
  session_.OnExchangeOver(kShard1, false);

  EXPECT_EQ(session_.TakeLanded(), std::set<ShardId>{kShard0});
}

// Lanes make the calls of all slots one after another, so another slot's call need not be waited
// for.
TEST(WorkerSessionTest, AnExchangeOfAnotherSlotHoldsNoSlotBack) {
  WorkerSession session({.core = {.depth = 2}});
  session.core().OnUnit({.id = 1, .first = 0, .batches = 4});
  ASSERT_TRUE(session.OnPulled(kShard0, 0, Weights(1)).ok());
  session.BeginPush(0, {.batches = {{0}}});
  session.SendTo(0, {kShard0});
  session.BeginExchange(kShard0, 0);

  EXPECT_EQ(session.Next(1), Action(WorkerCore::PullShards{{{kShard0, Version{0}}}}));
}

TEST(WorkerSessionTest, APullIsOfTheSequenceOfItsGeneration) {
  WorkerSession session({.core = {}});
  session.core().OnUnit({.id = 1, .first = 0, .batches = 3});
  ASSERT_TRUE(session.OnPulled(kShard0, 0, Weights(1)).ok());
  session.BeginPush(0, {.batches = {{0}}});
  session.SendTo(0, {kShard0});
  session.BeginExchange(kShard0, 0);
  ASSERT_TRUE(session.OnAnswer(kShard0, {.push = Reply(PushOutcome::kApplied)}).ok());
  session.OnExchangeOver(kShard0, true);
  session.core().OnReturned(Generation{1});

  EXPECT_EQ(session.PullFor({.shard = kShard0, .min_generation = Generation{0}}, 0).sequence,
            Sequence{2});
  EXPECT_EQ(session.PullFor({.shard = kShard0, .min_generation = Generation{1}}, 0).sequence,
            Sequence{1});
}

TEST(WorkerSessionTest, APushGoesToSomeShardsBeforeOthersAndIsOne) {
  WorkerSession session({.core = {.shards = 2, .quantum = 2}});
  session.core().OnUnit({.id = 1, .first = 0, .batches = 4});
  for (const ShardId shard : {kShard0, kShard1}) {
    ASSERT_TRUE(session.OnPulled(shard, 0, Weights(1)).ok());
  }

  session.BeginPush(0, {.batches = {{0, 2}}, .examples = 8});
  session.SendTo(0, {kShard1});
  EXPECT_EQ(session.unsent(0), std::vector<ShardId>{kShard0});
  session.BeginPush(0, {.batches = {{0, 2}}, .examples = 8});
  EXPECT_EQ(session.unsent(0), std::vector<ShardId>{kShard0}) << "the same push";

  session.AbortPush(0);
  EXPECT_EQ(session.unsent(0).size(), 2u);
  EXPECT_EQ(session.Next(0), Action(ComputeBatches{{{0, 2}}, true}));
}

}  // namespace
}  // namespace slipstream
