#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "tests/worker/core/shard_answers.h"
#include "worker/core/worker_core.h"

// Tests of a worker whose shards go on from an older state, in a new generation.

namespace slipstream {
namespace {

using Action = WorkerCore::Action;
using PullShards = WorkerCore::PullShards;
using ComputeBatches = WorkerCore::ComputeBatches;
using ReleaseShards = WorkerCore::ReleaseShards;

constexpr Generation kFirst{0};
constexpr Generation kSecond{1};

RoundWork Compute(uint64_t batch) { return {RoundWork::Kind::kCompute, {batch}}; }

WeightsHeader WeightsIn(Generation generation, uint64_t version,
                        std::optional<RoundWork> work = std::nullopt) {
  WeightsHeader header = Weights(version, work);
  header.generation = generation;
  return header;
}

PushReply ReplyIn(Generation generation, PushOutcome outcome) {
  PushReply reply = Reply(outcome);
  reply.generation = generation;
  return reply;
}

/// Returns a worker that has pushed the first of its batches to two shards, which took it.
WorkerCore AfterOnePush(WorkerCore::Options options = {}) {
  options.shards = 2;
  WorkerCore core(options);
  core.OnUnit({.id = 1, .first = 10, .batches = 9});
  for (const ShardId shard : {kShard0, kShard1}) {
    EXPECT_TRUE(core.OnWeights(shard, Weights(7)).ok());
  }
  Begin(core);
  for (const ShardId shard : {kShard0, kShard1}) {
    EXPECT_TRUE(core.OnReply(shard, Reply(PushOutcome::kApplied)).ok());
    EXPECT_TRUE(core.OnWeights(shard, Weights(8)).ok());
  }
  core.OnBatchesDone();
  EXPECT_EQ(core.sequence(kShard0), Sequence{2});
  return core;
}

TEST(WorkerCoreGenerationsTest,
     AShardThatRefusesInANewGenerationIsPulledFromAndItsSequenceBeginsAgain) {
  WorkerCore core = AfterOnePush();
  Begin(core);

  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(9)).ok());
  ASSERT_TRUE(core.OnReply(kShard1, ReplyIn(kSecond, PushOutcome::kTooStale)).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard1, Version{0}, kSecond}}}));
  EXPECT_EQ(core.sequence(kShard0), Sequence{3});
  EXPECT_EQ(core.sequence(kShard1), Sequence{1});
  ASSERT_TRUE(core.OnWeights(kShard1, WeightsIn(kSecond, 5)).ok());
  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{12}}, true})) << "shard 0 has counted batch 11";
}

TEST(WorkerCoreGenerationsTest, BatchesThatAllShardsRefuseAreNamedAgain) {
  WorkerCore core = AfterOnePush();
  Begin(core);

  for (const ShardId shard : {kShard0, kShard1}) {
    ASSERT_TRUE(core.OnReply(shard, ReplyIn(kSecond, PushOutcome::kTooStale)).ok());
  }
  core.OnBatchesDone();
  for (const ShardId shard : {kShard0, kShard1}) {
    ASSERT_TRUE(core.OnWeights(shard, WeightsIn(kSecond, 5)).ok());
  }

  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{11}}, true}));
}

TEST(WorkerCoreGenerationsTest, VersionsAreComparedWithinAGeneration) {
  WorkerCore core({.shards = 1});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(7)).ok());

  EXPECT_TRUE(absl::IsAborted(core.OnWeights(kShard0, Weights(6))));
  EXPECT_TRUE(core.OnWeights(kShard0, WeightsIn(kSecond, 3)).ok());
  EXPECT_TRUE(absl::IsAborted(core.OnWeights(kShard0, Weights(9)))) << "of the first generation";
}

TEST(WorkerCoreGenerationsTest, AnAnswerFromAGenerationThatIsOverUsesUpNoSequence) {
  WorkerCore core({.shards = 1, .pushes_per_fetch = kNeverFetches});
  core.OnUnit({.id = 1, .first = 0, .batches = 9});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(7)).ok());
  Begin(core);

  // The new generation shows itself beside the push, whose answer was on its way.
  ASSERT_TRUE(core.OnWeights(kShard0, WeightsIn(kSecond, 3)).ok());
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());

  EXPECT_EQ(core.sequence(kShard0), Sequence{1});
}

TEST(WorkerCoreGenerationsTest, OtherSlotsGoOnUntilTheShardRefusesThem) {
  WorkerCore core({.shards = 1, .depth = 2});
  core.OnUnit({.id = 1, .first = 0, .batches = 9});
  for (const uint32_t slot : {0u, 1u}) {
    ASSERT_TRUE(core.OnWeights(kShard0, Weights(7), slot).ok());
    Begin(core, slot);
  }

  ASSERT_TRUE(core.OnReply(kShard0, ReplyIn(kSecond, PushOutcome::kTooStale), 0).ok());

  EXPECT_EQ(core.generation(kShard0, 1), kFirst);
  EXPECT_EQ(core.Next(1), Action(ComputeBatches{{{1}}, true}));
  core.OnBatchesDone(0);
  ASSERT_TRUE(core.OnWeights(kShard0, WeightsIn(kSecond, 5), 0).ok());
  Begin(core, 0);
  ASSERT_TRUE(core.OnReply(kShard0, ReplyIn(kSecond, PushOutcome::kTooStale), 1).ok());
  EXPECT_EQ(core.sequence(kShard0), Sequence{1});
  EXPECT_EQ(core.Next(1), Action(PullShards{{{kShard0, Version{0}, kSecond}}}));
}

TEST(WorkerCoreGenerationsTest, WeightsThatBrokeOffInAGenerationThatIsOverAreLetGo) {
  WorkerCore core = AfterOnePush();

  EXPECT_TRUE(absl::IsAborted(core.OnRepeatedReply(kShard0, Reply(PushOutcome::kTooStale))));
  ASSERT_TRUE(core.OnRepeatedReply(kShard0, ReplyIn(kSecond, PushOutcome::kTooStale)).ok());

  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{0}, kSecond}}}));
  EXPECT_EQ(core.sequence(kShard0), Sequence{1});
}

TEST(WorkerCoreGenerationsTest, WeightsOfANewGenerationMayAnswerAPushOfTheLastAndBreakOff) {
  WorkerCore core = AfterOnePush();
  Begin(core);
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kBuffered)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, WeightsIn(kSecond, 5)).ok());

  ASSERT_TRUE(core.OnRepeatedReply(kShard0, ReplyIn(kSecond, PushOutcome::kTooStale)).ok());
  ASSERT_TRUE(core.OnReply(kShard1, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(9)).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{0}, kSecond}}}));
  EXPECT_EQ(core.sequence(kShard0), Sequence{1});
}

TEST(WorkerCoreGenerationsTest, AReleaseThatComesTooLateLeavesTheWorkerAtRest) {
  WorkerCore core({.shards = 1, .releases_unused = true});
  (void)core.ClockOfPull(kShard0);
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(7)).ok());
  ASSERT_EQ(core.Next(), Action(ReleaseShards{{kShard0}}));
  (void)core.TermsOfPush(kShard0, 0, false);

  ASSERT_TRUE(core.OnReply(kShard0, ReplyIn(kSecond, PushOutcome::kTooStale)).ok());

  // The shard may remember that the worker was at work, so it is told the rest in its new
  // generation.
  EXPECT_EQ(core.Next(), Action(ReleaseShards{{kShard0}}));
  EXPECT_EQ(core.generation(kShard0), kSecond);
  EXPECT_EQ(core.version(kShard0), Version{0});
  (void)core.TermsOfPush(kShard0, 0, false);
  ASSERT_TRUE(core.OnReply(kShard0, ReplyIn(kSecond, PushOutcome::kApplied)).ok());
  EXPECT_EQ(core.Next(), Action(WorkerCore::AwaitUnit{}));
}

/// A worker in step with two shards, which are at version 6.
class WorkerInStepTest : public testing::Test {
 protected:
  WorkerInStepTest() {
    EXPECT_TRUE(core_.OnWeights(kShard0, Weights(6, Compute(30))).ok());
    EXPECT_TRUE(core_.OnWeights(kShard1, Weights(6)).ok());
  }

  WorkerCore core_{{.shards = 2, .in_step = true}};
};

TEST_F(WorkerInStepTest, AllShardsArePulledInTheGenerationThatOneOfThemShows) {
  Begin(core_);
  ASSERT_TRUE(core_.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core_.OnWeights(kShard0, Weights(7, Compute(32))).ok());
  ASSERT_TRUE(core_.OnReply(kShard1, ReplyIn(kSecond, PushOutcome::kTooStale)).ok());
  core_.OnBatchesDone();

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard1, Version{0}, kSecond}}}));
  ASSERT_TRUE(core_.OnWeights(kShard1, WeightsIn(kSecond, 4)).ok());
  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard0, Version{4}, kSecond}}}))
      << "version 7 of the first generation is no newer one";
  ASSERT_TRUE(core_.OnWeights(kShard0, WeightsIn(kSecond, 4, Compute(22))).ok());

  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{22}}, true}));
  EXPECT_EQ(core_.sequence(kShard0), Sequence{1});
  EXPECT_EQ(core_.sequence(kShard1), Sequence{1});
}

TEST_F(WorkerInStepTest, AShardThatHasYetToReturnIsNoReasonForAnExcuse) {
  ASSERT_TRUE(core_.OnWeights(kShard0, WeightsIn(kSecond, 4, Compute(22))).ok());

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard1, Version{4}, kSecond}}}));
}

TEST_F(WorkerInStepTest, ARoundThatEndsWithAGenerationIsNotExcused) {
  Begin(core_);
  ASSERT_TRUE(core_.OnReply(kShard1, ReplyIn(kSecond, PushOutcome::kTooStale)).ok());

  core_.OnBatchesSkipped();

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard1, Version{0}, kSecond}}}));
  EXPECT_FALSE(core_.TermsOfPush(kShard1).leaves_out);
}

}  // namespace
}  // namespace slipstream
