#include <gtest/gtest.h>

#include <vector>

#include "tests/worker/core/shard_answers.h"
#include "worker/core/worker_core.h"

// Tests of a worker that fetches weights less often than it pushes, or never with a push.

namespace slipstream {
namespace {

using Action = WorkerCore::Action;
using ComputeBatches = WorkerCore::ComputeBatches;
using PullShards = WorkerCore::PullShards;

/// Two pushes from one fetch to the next, and six mini-batches at hand.
class FetchTest : public testing::Test {
 protected:
  FetchTest() {
    core_.OnUnit({.id = 1, .first = 0, .batches = 6});
    Fetch(kShard0, 5);
    Fetch(kShard1, 7);
  }

  void Fetch(ShardId shard, uint64_t version) {
    ASSERT_TRUE(core_.OnWeights(shard, Weights(version)).ok());
  }

  /// Pushes the next batch. The shards answer, and bring weights of `version` if they are asked.
  void Push(uint64_t version, PushOutcome of_first = PushOutcome::kApplied,
            PushOutcome of_second = PushOutcome::kApplied) {
    Begin(core_);
    for (const ShardId shard : {kShard0, kShard1}) {
      const PushOutcome outcome = shard == kShard0 ? of_first : of_second;
      const bool pulls = core_.TermsOfPush(shard).pull;
      ASSERT_TRUE(core_.OnReply(shard, Reply(outcome)).ok());
      if (pulls && outcome != PushOutcome::kTooStale) Fetch(shard, version);
    }
    core_.OnBatchesDone();
  }

  WorkerCore core_{{.shards = 2, .pushes_per_fetch = 2}};
};

TEST_F(FetchTest, EverySecondPushFetchesAndTheOtherStandsOnTheSameBase) {
  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{0}}, false}));
  Push(8);
  EXPECT_TRUE(core_.goes_on());
  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{1}}, true}));
  EXPECT_EQ(core_.version(kShard0), Version{5});
  EXPECT_EQ(core_.version(kShard1), Version{7});

  Push(8);

  EXPECT_FALSE(core_.goes_on());
  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{2}}, false}));
  EXPECT_EQ(core_.version(kShard0), Version{8});
}

TEST_F(FetchTest, ARefusalFetchesFromThatShardAlone) {
  Push(8, PushOutcome::kTooStale);

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard0, Version{0}}}}));
  Fetch(kShard0, 9);
  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{1}}, true})) << "the next fetch is not put off";
}

TEST_F(FetchTest, APushThatAllRefusedIsComputedAgainAndBeginsAnewToCount) {
  Push(8);
  Push(8, PushOutcome::kTooStale, PushOutcome::kTooStale);

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard0, Version{0}}, {kShard1, Version{0}}}}));
  Fetch(kShard0, 9);
  Fetch(kShard1, 9);
  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{1}}, false}));
}

TEST_F(FetchTest, APushThatAShardDroppedLeavesTheWorkerItsWeights) {
  Push(8, PushOutcome::kDroppedLate);

  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{1}}, true}));
}

TEST_F(FetchTest, AfterALeftOutBatchAllWeightsAreFetched) {
  Push(8);
  Begin(core_);

  core_.OnBatchesSkipped();

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard0, Version{0}}, {kShard1, Version{0}}}}));
}

TEST_F(FetchTest, AnotherPolicyBeginsWithAFetch) {
  Push(8);
  ASSERT_TRUE(core_.goes_on());

  core_.EnterStage({.number = 1, .since = 1});

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard0, Version{0}}, {kShard1, Version{0}}}}));
}

TEST_F(FetchTest, NothingIsFetchedForTheEnd) {
  core_.OnNoMoreUnits();
  for (int i = 0; i < 5; ++i) Push(8 + i);

  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{5}}, false}));
  Push(20);

  EXPECT_EQ(core_.Next(), Action(WorkerCore::Finished{}));
}

/// Two gradients in flight, no push that fetches, and six mini-batches at hand. Both slots have
/// pulled.
class NeverFetchTest : public testing::Test {
 protected:
  NeverFetchTest() {
    core_.OnUnit({.id = 1, .first = 0, .batches = 6});
    for (uint32_t slot : {0u, 1u}) {
      EXPECT_EQ(core_.Next(slot),
                Action(PullShards{{{kShard0, Version{0}}, {kShard1, Version{0}}}}));
      for (const ShardId shard : {kShard0, kShard1}) Take(shard, 5, slot);
    }
  }

  void Take(ShardId shard, uint64_t version, uint32_t slot) {
    ASSERT_TRUE(core_.OnWeights(shard, Weights(version), slot).ok());
  }

  void Answer(uint32_t slot, PushOutcome of_first = PushOutcome::kApplied) {
    ASSERT_TRUE(core_.OnReply(kShard0, Reply(of_first), slot).ok());
    ASSERT_TRUE(core_.OnReply(kShard1, Reply(PushOutcome::kApplied), slot).ok());
    core_.OnBatchesDone(slot);
  }

  WorkerCore core_{{.shards = 2, .depth = 2, .pushes_per_fetch = kNeverFetches}};
};

TEST_F(NeverFetchTest, SlotsTakeTurnsAndNoPushFetches) {
  for (uint64_t batch = 0; batch < 6; ++batch) {
    const uint32_t slot = batch % 2;
    if (batch >= 2) Answer(slot);
    ASSERT_EQ(core_.Next(slot), Action(ComputeBatches{{{batch}}, false}));
    Begin(core_, slot);
    EXPECT_FALSE(core_.TermsOfPush(kShard0, slot).pull);
    EXPECT_TRUE(core_.goes_on());
  }
}

TEST_F(NeverFetchTest, APushStandsShardByShardOnTheWeightsThatReplacedThoseBefore) {
  Begin(core_);
  Answer(0);
  Take(kShard1, 9, 0);

  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{1}}, false}));
  EXPECT_EQ(core_.version(kShard0), Version{5});
  EXPECT_EQ(core_.version(kShard1), Version{9});
  EXPECT_EQ(core_.version(kShard1, 1), Version{5}) << "the other slot keeps its own";
}

TEST_F(NeverFetchTest, WeightsDoNotGoBack) {
  Begin(core_);
  Answer(0);

  EXPECT_FALSE(core_.OnWeights(kShard0, Weights(4)).ok());
}

TEST_F(NeverFetchTest, AfterARefusalTheSlotPullsFromThatShardAlone) {
  Begin(core_);
  Answer(0, PushOutcome::kTooStale);

  EXPECT_EQ(core_.Next(), Action(PullShards{{{kShard0, Version{0}}}}));
  EXPECT_EQ(core_.Next(1), Action(ComputeBatches{{{1}}, false}));
  Take(kShard0, 8, 0);
  EXPECT_EQ(core_.Next(), Action(ComputeBatches{{{1}}, false}));
}

TEST_F(NeverFetchTest, AnotherPolicyBeginsWithAFetchOfEachSlot) {
  Begin(core_);
  Answer(0);

  core_.EnterStage({.number = 1, .since = 1});

  for (uint32_t slot : {0u, 1u}) {
    EXPECT_EQ(core_.Next(slot), Action(PullShards{{{kShard0, Version{0}}, {kShard1, Version{0}}}}));
  }
}

}  // namespace
}  // namespace slipstream
