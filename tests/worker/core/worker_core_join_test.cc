#include <gtest/gtest.h>

#include "tests/worker/core/shard_answers.h"
#include "worker/core/worker_core.h"

namespace slipstream {
namespace {

using Action = WorkerCore::Action;
using PullShards = WorkerCore::PullShards;
using ExcuseShards = WorkerCore::ExcuseShards;

constexpr ShardId kShard2{2};

/// A worker that joins a run with rounds, of three shards, and finds shard 2 a version behind.
class JoiningTest : public testing::Test {
 protected:
  JoiningTest() {
    EXPECT_TRUE(core_.OnWeights(kShard1, Weights(10)).ok());
    EXPECT_TRUE(core_.OnWeights(kShard2, Weights(9)).ok());
  }

  WorkerCore core_{{.shards = 3, .in_step = true}};
};

// Others may push to shard 0 only once shard 2 has answered them, and shard 2 waits for the worker.
TEST_F(JoiningTest, ExcusesItselfAtShardsBehindBeforeItWaitsForTheFirst) {
  EXPECT_EQ(core_.Next(), Action(ExcuseShards{{kShard2}}));

  ASSERT_TRUE(core_.OnReply(kShard2, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core_.OnWeights(kShard2, Weights(10)).ok());

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard0, Version{10}}}}));
}

// Shard 2 gave a round that is over, because the worker has the place of a lost one. The open round
// still waits for the lost one's mini-batch.
TEST_F(JoiningTest, DoesTheRoundThatAShardLacksAfterItsExcuseCameLate) {
  ASSERT_TRUE(core_.OnReply(kShard2, Reply(PushOutcome::kDroppedLate)).ok());
  ASSERT_TRUE(core_.OnWeights(kShard2, Weights(10)).ok());
  ASSERT_TRUE(core_.OnWeights(kShard0, Weights(10, RoundWork{.batches = {30}})).ok());

  EXPECT_EQ(core_.Next(), Action(WorkerCore::ComputeBatches{{{30}}, true}));
}

TEST_F(JoiningTest, AsksTheFirstWhereAnotherGoesNoFurther) {
  ASSERT_TRUE(core_.OnReply(kShard2, Reply(PushOutcome::kDroppedLate)).ok());
  ASSERT_TRUE(core_.OnWeights(kShard2, Weights(9)).ok());

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard0, Version{10}}}}));
}

}  // namespace
}  // namespace slipstream
