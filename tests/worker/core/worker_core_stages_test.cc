#include <gtest/gtest.h>

#include "tests/worker/core/shard_answers.h"
#include "worker/core/worker_core.h"

// Tests of a worker whose run goes from one policy to another.

namespace slipstream {
namespace {

using Action = WorkerCore::Action;

WeightsHeader OfStage(uint32_t stage, WeightsHeader header) {
  header.stage = stage;
  return header;
}

TEST(WorkerCoreStagesTest, PullsAnewForUnitsOnceRoundsAreOver) {
  WorkerCore core({.shards = 2, .in_step = true});
  const RoundWork finished = {.kind = RoundWork::Kind::kFinished};
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(3)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(3, finished)).ok());
  ASSERT_EQ(core.Next(), Action(WorkerCore::Finished{}));

  core.EnterStage({.number = 1, .since = 1});

  EXPECT_EQ(core.Next(), Action(WorkerCore::AwaitUnit{}));
  core.OnUnit({.id = 1, .first = 6, .batches = 1});
  // Shards do not wait for gradients of the weights that it held.
  EXPECT_EQ(core.Next(), Action(WorkerCore::PullShards{{{kShard0, {}}, {kShard1, {}}}}));
  ASSERT_TRUE(core.OnWeights(kShard0, OfStage(1, Weights(3))).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, OfStage(1, Weights(4))).ok());
  EXPECT_EQ(core.Next(), Action(WorkerCore::ComputeBatches{{{6, 1}}, true}));
}

TEST(WorkerCoreStagesTest, LearnsFromAShardThatItsStageIsOver) {
  WorkerCore core({.shards = 2, .in_step = true});

  ASSERT_TRUE(core.OnWeights(kShard1, OfStage(1, Weights(9))).ok());
  EXPECT_EQ(core.Next(), Action(WorkerCore::Finished{}));

  core.EnterStage({.number = 1, .since = 1, .releases_unused = true});
  core.OnUnit({.id = 1, .first = 6, .batches = 1});
  // The weights of shard 1 are of this stage.
  EXPECT_EQ(core.Next(), Action(WorkerCore::PullShards{{{kShard0, {}}}}));
}

TEST(WorkerCoreStagesTest, TakesTheWorkThatCameWithWeightsOfTheNextStage) {
  WorkerCore core({.shards = 1, .in_step = true});
  const RoundWork next = {.kind = RoundWork::Kind::kCompute, .batches = {8, 1}};
  ASSERT_TRUE(core.OnWeights(kShard0, OfStage(1, Weights(5, next))).ok());
  ASSERT_EQ(core.Next(), Action(WorkerCore::Finished{}));

  core.EnterStage({.number = 1, .since = 1, .in_step = true});

  EXPECT_EQ(core.Next(), Action(WorkerCore::ComputeBatches{{{8, 1}}, true}));
}

TEST(WorkerCoreStagesTest, ForgetsBatchesWhosePushWasAbortedWithTheirStage) {
  WorkerCore core({.shards = 1, .in_step = true});
  const RoundWork work = {.kind = RoundWork::Kind::kCompute, .batches = {4, 1}};
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(2, work)).ok());
  Begin(core);
  ASSERT_TRUE(core.OnWeights(kShard0, OfStage(1, Weights(3))).ok());  // A repeated call's.
  ASSERT_EQ(core.Next(), Action(WorkerCore::Finished{}));

  core.EnterStage({.number = 1, .since = 1});

  core.OnUnit({.id = 1, .first = 6, .batches = 1});
  EXPECT_EQ(core.Next(), Action(WorkerCore::ComputeBatches{{{6, 1}}, true}));
}

TEST(WorkerCoreStagesTest, APushThatCameTooLateForItsStageEndsIt) {
  WorkerCore core({.shards = 1, .in_step = true});
  const RoundWork work = {.kind = RoundWork::Kind::kCompute, .batches = {4, 1}};
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(2, work)).ok());
  Begin(core);
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kDroppedLate)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, OfStage(1, Weights(3))).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.Next(), Action(WorkerCore::Finished{}));
  EXPECT_EQ(core.sequence(kShard0), Sequence{2});
}

TEST(WorkerCoreStagesTest, GoesOnWithItsWeightsWhereShardsTakeTheirGradients) {
  WorkerCore core({.shards = 1});
  core.OnUnit({.id = 1, .first = 6, .batches = 2});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(3)).ok());
  Begin(core);

  core.EnterStage({.number = 2, .since = 0, .releases_unused = true});

  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, OfStage(2, Weights(4))).ok());
  core.OnBatchesDone();
  EXPECT_EQ(core.Next(), Action(WorkerCore::ComputeBatches{{{7, 1}}, true}));
}

TEST(WorkerCoreStagesTest, SaysThatItRestsOnceOthersMayWaitForIt) {
  WorkerCore core({.shards = 1});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(3)).ok());
  ASSERT_EQ(core.Next(), Action(WorkerCore::AwaitUnit{}));

  core.EnterStage({.number = 1, .since = 0, .releases_unused = true});

  EXPECT_EQ(core.Next(), Action(WorkerCore::ReleaseShards{{kShard0}}));
}

}  // namespace
}  // namespace slipstream
