#include <gtest/gtest.h>

#include "tests/worker/core/shard_answers.h"
#include "worker/core/worker_core.h"

// Tests of the clock that a worker reports, and of pushes that one shard takes and another drops.

namespace slipstream {
namespace {

using Action = WorkerCore::Action;

/// Returns a core whose shards wait for members, and which has the weights of both shards.
WorkerCore CoreWithPace() {
  WorkerCore core({.shards = 2, .releases_unused = true});
  core.OnUnit({.id = 1, .first = 0, .batches = 2});
  for (const ShardId shard : {kShard0, kShard1}) {
    EXPECT_EQ(core.ClockOfPull(shard), WorkerClock{0});
    EXPECT_TRUE(core.OnWeights(shard, Weights(0)).ok());
  }
  return core;
}

/// Pushes the current batch and lets both shards answer. Returns the terms of the push to the
/// second.
WorkerCore::PushTerms PushBatch(WorkerCore& core,
                                const PushReply& of_second = Reply(PushOutcome::kApplied)) {
  Begin(core);
  core.TermsOfPush(kShard0);
  const WorkerCore::PushTerms terms = core.TermsOfPush(kShard1);
  EXPECT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  EXPECT_TRUE(core.OnReply(kShard1, of_second).ok());
  if (terms.pull) {
    EXPECT_TRUE(core.OnWeights(kShard0, Weights(100)).ok());
    if (Counts(of_second)) {
      EXPECT_TRUE(core.OnWeights(kShard1, Weights(100)).ok());
    }
  }
  core.OnBatchesDone();
  return terms;
}

TEST(WorkerCorePaceTest, ItsClockCountsWhatItHasPushed) {
  WorkerCore core = CoreWithPace();

  EXPECT_EQ(PushBatch(core).clock, WorkerClock{1});
  EXPECT_EQ(PushBatch(core).clock, WorkerClock{2});
}

TEST(WorkerCorePaceTest, RestsWhereNoBatchIsAtHand) {
  WorkerCore core = CoreWithPace();
  EXPECT_FALSE(PushBatch(core).rests);
  EXPECT_FALSE(PushBatch(core).rests);  // Another unit may come, so it takes weights.

  EXPECT_EQ(core.Next(), Action(WorkerCore::ReleaseShards{{kShard0, kShard1}}));
  for (const ShardId shard : {kShard0, kShard1}) {
    EXPECT_TRUE(core.TermsOfPush(shard, 0, /*pull=*/false).rests);
    ASSERT_TRUE(core.OnReply(shard, Reply(PushOutcome::kBuffered)).ok());
  }
  EXPECT_EQ(core.Next(), Action(WorkerCore::AwaitUnit{}));
}

TEST(WorkerCorePaceTest, RestsWithItsLastPush) {
  WorkerCore core = CoreWithPace();
  core.OnNoMoreUnits();
  PushBatch(core);

  EXPECT_TRUE(PushBatch(core).rests);
  EXPECT_EQ(core.Next(), Action(WorkerCore::Finished{}));
}

TEST(WorkerCorePaceTest, SaysThatItRestsAlsoWhereItsLastPushWasRefused) {
  WorkerCore core = CoreWithPace();
  core.OnNoMoreUnits();
  PushBatch(core);
  PushBatch(core, Reply(PushOutcome::kTooStale));

  EXPECT_EQ(core.Next(), Action(WorkerCore::ReleaseShards{{kShard1}}));
}

TEST(WorkerCorePaceTest, CountsPushesThatSomeShardsTakeAndOthersDrop) {
  WorkerCore core = CoreWithPace();

  PushBatch(core);
  EXPECT_EQ(core.split_pushes(), 0u);
  PushBatch(core, Reply(PushOutcome::kDroppedLate));

  EXPECT_EQ(core.split_pushes(), 1u);
}

TEST(WorkerCorePaceTest, KnowsADroppedPushWhoseAnswerWasLostByItsRepetition) {
  WorkerCore core = CoreWithPace();
  PushReply again = Reply(PushOutcome::kDuplicate);
  again.first_outcome = PushOutcome::kDroppedLate;

  PushBatch(core);
  PushBatch(core, again);

  EXPECT_EQ(core.split_pushes(), 1u);
}

TEST(WorkerCorePaceTest, GoesOnFromTheClockThatShardZeroNames) {
  WorkerCore core({.shards = 2, .releases_unused = true});
  core.OnUnit({.id = 1, .first = 0, .batches = 2});
  WeightsHeader ahead = Weights(3);
  ahead.clock = WorkerClock{40};
  EXPECT_EQ(core.Next(), Action(WorkerCore::PullShards{{{kShard0, Version{0}}}}));
  ASSERT_TRUE(core.OnWeights(kShard0, ahead).ok());
  EXPECT_EQ(core.Next(), Action(WorkerCore::PullShards{{{kShard1, Version{0}}}}));
  EXPECT_EQ(core.ClockOfPull(kShard1), WorkerClock{40}) << "nobody is to wait for an older one";
  ahead.clock = WorkerClock{41};  // The second shard's members are at other clocks.
  ASSERT_TRUE(core.OnWeights(kShard1, ahead).ok());

  EXPECT_EQ(PushBatch(core).clock, WorkerClock{41});
}

}  // namespace
}  // namespace slipstream
