#include "worker/core/worker_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "tests/worker/core/shard_answers.h"

namespace slipstream {
namespace {

using Action = WorkerCore::Action;
using PullShards = WorkerCore::PullShards;
using ExcuseShards = WorkerCore::ExcuseShards;
using ComputeBatches = WorkerCore::ComputeBatches;

RoundWork Compute(uint64_t batch) { return {RoundWork::Kind::kCompute, {batch}}; }
RoundWork Excused() { return {.kind = RoundWork::Kind::kExcused}; }
RoundWork NoMore() { return {.kind = RoundWork::Kind::kFinished}; }

/// Shards 0 and 1 take a push and answer with `version`.
void Answer(WorkerCore& core, uint64_t version, RoundWork work) {
  for (const ShardId shard : {kShard0, kShard1}) {
    ASSERT_TRUE(core.OnReply(shard, Reply(PushOutcome::kApplied)).ok());
    ASSERT_TRUE(core.OnWeights(shard, Weights(version, work)).ok());
  }
}

TEST(WorkerCoreTest, StartsByPullingEveryShardAndLastTheOneThatNamesWork) {
  WorkerCore core({.shards = 3, .in_step = true});
  constexpr ShardId kShard2{2};
  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard1, Version{0}}, {kShard2, Version{0}}}}));

  ASSERT_TRUE(core.OnWeights(kShard1, Weights(6)).ok());
  ASSERT_TRUE(core.OnWeights(kShard2, Weights(6)).ok());

  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{6}}}}));
}

TEST(WorkerCoreTest, ComputesTheBatchThatShardZeroNames) {
  WorkerCore core({.shards = 2, .in_step = true});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(0, Compute(3))).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(0)).ok());
  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{3}}, true}));

  Begin(core);
  Answer(core, 1, Compute(7));
  core.OnBatchesDone();

  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{7}}, true}));
  EXPECT_EQ(core.sequence(kShard1), Sequence{2});
  EXPECT_EQ(core.version(kShard1), Version{1});
}

TEST(WorkerCoreTest, ExcusesItselfEverywhereFromARoundWithoutWorkForIt) {
  WorkerCore core({.shards = 2, .in_step = true});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(4, Excused())).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(4)).ok());
  EXPECT_EQ(core.Next(), Action(ExcuseShards{{kShard0, kShard1}}));

  Answer(core, 5, NoMore());

  EXPECT_EQ(core.Next(), Action(WorkerCore::Finished{}));
}

TEST(WorkerCoreTest, WaitsForNoShardThatHasEndedBehindTheOthers) {
  WorkerCore core({.shards = 2, .in_step = true});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(3, NoMore())).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(2)).ok());
  EXPECT_EQ(core.Next(), Action(ExcuseShards{{kShard1}}));

  ASSERT_TRUE(core.OnReply(kShard1, Reply(PushOutcome::kDroppedLate)).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(2)).ok());

  EXPECT_EQ(core.Next(), Action(WorkerCore::Finished{}));
}

TEST(WorkerCoreTest, WhoJoinsBetweenTwoUpdatesExcusesItselfWhereAShardIsBehind) {
  WorkerCore core({.shards = 2, .in_step = true});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(9, Compute(30))).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(10)).ok());
  EXPECT_EQ(core.Next(), Action(ExcuseShards{{kShard0}}));

  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kBuffered)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(10, Compute(33))).ok());

  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{33}}, true}));
  EXPECT_EQ(core.sequence(kShard0), Sequence{2});
  EXPECT_EQ(core.sequence(kShard1), Sequence{1});
}

TEST(WorkerCoreTest, ExcusesItselfFirstWhereAShardIsFurthestBehind) {
  WorkerCore core({.shards = 3, .in_step = true});
  constexpr ShardId kShard2{2};
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(9, Excused())).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(8)).ok());
  ASSERT_TRUE(core.OnWeights(kShard2, Weights(7)).ok());
  EXPECT_EQ(core.Next(), Action(ExcuseShards{{kShard2}}));

  ASSERT_TRUE(core.OnReply(kShard2, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core.OnWeights(kShard2, Weights(8)).ok());

  EXPECT_EQ(core.Next(), Action(ExcuseShards{{kShard1, kShard2}}));
}

TEST(WorkerCoreTest, IsLevelWithAllShardsBeforeItBelievesTheRunFinished) {
  WorkerCore core({.shards = 2, .in_step = true});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(10, NoMore())).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(9)).ok());

  EXPECT_EQ(core.Next(), Action(ExcuseShards{{kShard1}}));
}

TEST(WorkerCoreTest, PullsAgainAtTheNewestVersionWhatAnAnswerDidNotBring) {
  WorkerCore core({.shards = 2, .in_step = true});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(0, Compute(1))).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(0)).ok());
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(1, Compute(2))).ok());
  ASSERT_TRUE(core.OnReply(kShard1, Reply(PushOutcome::kApplied)).ok());

  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard1, Version{1}}}}));
}

TEST(WorkerCoreTest, ARefusedPushKeepsItsSequence) {
  WorkerCore core({.shards = 1});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5)).ok());
  core.OnUnit({.id = 1, .first = 0, .batches = 9});

  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kTooStale)).ok());

  EXPECT_EQ(core.sequence(kShard0), Sequence{1});
  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{0}}}}));
}

TEST(WorkerCoreTest, ABatchLeftOutExcusesItselfFromItsRoundOnEveryShard) {
  WorkerCore core({.shards = 2, .in_step = true});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(4, Compute(3))).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(4)).ok());
  Begin(core);

  core.OnBatchesSkipped();
  EXPECT_EQ(core.Next(), Action(ExcuseShards{{kShard0, kShard1}}));
  Answer(core, 5, Compute(7));

  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{7}}, true}));
  EXPECT_EQ(core.sequence(kShard0), Sequence{2});
}

TEST(WorkerCoreTest, ABatchLeftOutCountsAsDoneAndIsFollowedByNewerWeights) {
  WorkerCore core({.shards = 1});
  core.OnUnit({.id = 1, .first = 0, .batches = 2});
  core.OnNoMoreUnits();
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5)).ok());
  Begin(core);

  core.OnBatchesSkipped();

  EXPECT_EQ(core.progress(), (std::vector<UnitProgress>{{.id = 1, .batches_done = 1}}));
  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{0}}}}));
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(6)).ok());
  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{1}}, false}));
  EXPECT_EQ(core.sequence(kShard0), Sequence{1});
  Begin(core);
  core.OnBatchesSkipped();
  EXPECT_EQ(core.Next(), Action(WorkerCore::Finished{}));
}

TEST(WorkerCoreTest, AWorkerThatKeepsItsWeightsPullsAtTheStartForEachPushAndAfterALeftOutBatch) {
  WorkerCore core({.shards = 1, .keeps_weights = true});
  core.OnUnit({.id = 1, .first = 0, .batches = 3});
  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{0}}}}));
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5)).ok());
  Begin(core);
  EXPECT_FALSE(core.wants_weights()) << "with the answer";
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{1}}, false}));
  EXPECT_EQ(core.PullsOfPush(), (PullShards{{{kShard0, Version{0}}}}));
  Begin(core);
  core.OnBatchesSkipped();

  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{0}}}}));
}

TEST(WorkerCoreTest, ABatchLeftOutIsReleasedWhereShardsWaitForIt) {
  WorkerCore core({.shards = 2, .releases_unused = true});
  core.OnUnit({.id = 1, .first = 0, .batches = 2});
  core.OnNoMoreUnits();
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5)).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(5)).ok());
  Begin(core);

  core.OnBatchesSkipped();
  EXPECT_EQ(core.Next(), Action(WorkerCore::ReleaseShards{{kShard0, kShard1}}));
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kBuffered)).ok());
  ASSERT_TRUE(core.OnReply(kShard1, Reply(PushOutcome::kBuffered)).ok());
  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{0}}}}));
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(6)).ok());
  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard1, Version{0}}}}));
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(6)).ok());
  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{1}}, false}));

  Begin(core);
  core.OnBatchesSkipped();
  EXPECT_EQ(core.Next(), Action(WorkerCore::ReleaseShards{{kShard0, kShard1}}));
}

TEST(WorkerCoreTest, ABatchThatAllShardsRefuseAfterAReleaseIsNamedAgain) {
  WorkerCore core({.shards = 1, .releases_unused = true});
  core.OnUnit({.id = 1, .first = 0, .batches = 3});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5)).ok());
  Begin(core);
  core.OnBatchesSkipped();
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kBuffered)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(6)).ok());
  Begin(core);

  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kTooStale)).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.progress(), (std::vector<UnitProgress>{{.id = 1, .batches_done = 1}}));
}

TEST(WorkerCoreTest, AFencedWorkerCannotGoOn) {
  WorkerCore core({.shards = 1});

  EXPECT_EQ(core.OnReply(kShard0, Reply(PushOutcome::kFenced)).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(WorkerCoreTest, RefusesAShardWhoseClockGoesBack) {
  WorkerCore core({.shards = 1});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5)).ok());

  EXPECT_EQ(core.OnWeights(kShard0, Weights(4)).code(), absl::StatusCode::kAborted);
}

TEST(WorkerCoreTest, RefusesWeightsOfShardZeroWithoutWorkUnderRounds) {
  WorkerCore core({.shards = 2, .in_step = true});

  EXPECT_EQ(core.OnWeights(kShard0, Weights(5)).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(core.OnWeights(kShard1, Weights(5)).ok());
}

TEST(WorkerCoreTest, WithoutRoundsItPullsOnlyOnceThereIsWork) {
  WorkerCore core({.shards = 1});
  EXPECT_EQ(core.wanted(), 1u);
  EXPECT_EQ(core.Next(), Action(WorkerCore::AwaitUnit{}));

  core.OnUnit({.id = 1, .first = 6, .batches = 1});

  EXPECT_EQ(core.Next(), Action(PullShards{{{kShard0, Version{0}}}}));
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(2)).ok());
  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{6}}, true}));
}

TEST(WorkerCoreTest, WithoutRoundsShardsMayBeApart) {
  WorkerCore core({.shards = 2});
  core.OnUnit({.id = 1, .first = 6, .batches = 1});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(2)).ok());
  ASSERT_TRUE(core.OnWeights(kShard1, Weights(8)).ok());

  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{6}}, true}));
}

TEST(WorkerCoreTest, PushesItsLastBatchWithoutPulling) {
  WorkerCore core({.shards = 1});
  core.OnUnit({.id = 1, .first = 6, .batches = 1});
  core.OnNoMoreUnits();
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(2)).ok());
  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{6}}, false}));

  Begin(core);
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.Next(), Action(WorkerCore::Finished{}));
}

TEST(WorkerCoreTest, ASlotComputesWhileThePushOfTheOtherIsUnderWay) {
  WorkerCore core({.shards = 1, .depth = 2});
  core.OnUnit({.id = 1, .first = 6, .batches = 9});
  EXPECT_EQ(core.Next(0), Action(PullShards{{{kShard0, Version{0}}}}));
  EXPECT_EQ(core.Next(1), Action(PullShards{{{kShard0, Version{0}}}}));
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(2), 0).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(3), 1).ok());
  EXPECT_EQ(core.Next(0), Action(ComputeBatches{{{6}}, true}));
  Begin(core, 0);
  EXPECT_EQ(core.Next(1), Action(ComputeBatches{{{7}}, true}));
  Begin(core, 1);

  EXPECT_EQ(core.Next(0), Action(ComputeBatches{{{6}}, true}));
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied), 0).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5), 0).ok());
  core.OnBatchesDone(0);

  EXPECT_EQ(core.Next(1), Action(ComputeBatches{{{7}}, true}));
  EXPECT_EQ(core.Next(0), Action(ComputeBatches{{{8}}, true}));
  EXPECT_EQ(core.version(kShard0, 0), Version{5});
  EXPECT_EQ(core.version(kShard0, 1), Version{3});
  EXPECT_EQ(core.sequence(kShard0), Sequence{2});
}

TEST(WorkerCoreTest, TheLastPushOfEachSlotTakesNoWeights) {
  WorkerCore core({.shards = 1, .depth = 2});
  core.OnUnit({.id = 1, .first = 0, .batches = 3});
  core.OnNoMoreUnits();
  for (const uint32_t slot : {0u, 1u}) {
    ASSERT_TRUE(core.OnWeights(kShard0, Weights(1), slot).ok());
    Begin(core, slot);
  }
  EXPECT_TRUE(core.wants_weights(0));
  EXPECT_FALSE(core.wants_weights(1));
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied), 0).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(2), 0).ok());
  core.OnBatchesDone(0);

  EXPECT_EQ(core.Next(0), Action(ComputeBatches{{{2}}, false}));
  Begin(core, 0);
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied), 1).ok());
  core.OnBatchesDone(1);

  EXPECT_EQ(core.Next(1), Action(WorkerCore::Finished{}));
  EXPECT_EQ(core.Next(0), Action(ComputeBatches{{{2}}, false}));
}

TEST(WorkerCoreTest, ASlotWithoutABatchWaitsForAUnitWhileTheOtherComputes) {
  WorkerCore core({.shards = 1, .depth = 2});
  core.OnUnit({.id = 1, .first = 0, .batches = 1});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(1), 0).ok());
  Begin(core, 0);

  EXPECT_EQ(core.wanted(), 1u);
  EXPECT_EQ(core.Next(1), Action(WorkerCore::AwaitUnit{}));
}

TEST(WorkerCoreTest, WeightsOfANewerVersionReplaceThoseThatWereOnTheirWay) {
  WorkerCore core({.shards = 1});
  core.OnUnit({.id = 1, .first = 6, .batches = 2});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5)).ok());

  ASSERT_TRUE(core.OnWeights(kShard0, Weights(6)).ok());

  EXPECT_EQ(core.version(kShard0), Version{6});
  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{6}}, true}));
}

TEST(WorkerCoreTest, ComputesABatchAgainThatEveryShardFoundTooStale) {
  WorkerCore core({.shards = 2});
  core.OnUnit({.id = 1, .first = 6, .batches = 2});
  for (const ShardId shard : {kShard0, kShard1}) {
    ASSERT_TRUE(core.OnWeights(shard, Weights(2)).ok());
  }
  Begin(core);
  for (const ShardId shard : {kShard0, kShard1}) {
    ASSERT_TRUE(core.OnReply(shard, Reply(PushOutcome::kTooStale)).ok());
  }
  core.OnBatchesDone();
  for (const ShardId shard : {kShard0, kShard1}) {
    ASSERT_TRUE(core.OnWeights(shard, Weights(9)).ok());
  }

  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{6}}, true}));
}

TEST(WorkerCoreTest, ABatchThatOneShardTookCountsAsDone) {
  WorkerCore core({.shards = 2});
  core.OnUnit({.id = 1, .first = 6, .batches = 2});
  for (const ShardId shard : {kShard0, kShard1}) {
    ASSERT_TRUE(core.OnWeights(shard, Weights(2)).ok());
  }
  Begin(core);
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core.OnReply(kShard1, Reply(PushOutcome::kTooStale)).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.progress().front().batches_done, 1u);
}

TEST(WorkerCoreTest, TellsShardsThatWaitForGradientsWhereNoneWillCome) {
  WorkerCore core({.shards = 1, .releases_unused = true});
  core.OnUnit({.id = 1, .first = 6, .batches = 1});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(2)).ok());
  Begin(core);
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(3)).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.Next(), Action(WorkerCore::ReleaseShards{{kShard0}}));
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kBuffered)).ok());
  EXPECT_EQ(core.Next(), Action(WorkerCore::AwaitUnit{}));
  EXPECT_EQ(core.sequence(kShard0), Sequence{3});
}

/// The shards close rounds of two members: this worker, and another that is always ready.
TEST(WorkerCoreTest, GetsLevelFromAnyStartAndComputesEveryLaterRound) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    std::vector<uint64_t> versions(1 + random.Below(5));
    for (uint64_t& version : versions) version = 20 + random.Below(3);
    WorkerCore core({.shards = static_cast<uint32_t>(versions.size()), .in_step = true});
    const auto send = [&](ShardId shard) {
      const uint64_t version = versions[Value(shard)];
      return core.OnWeights(shard, Weights(version, Compute(2 * version + 1)));
    };
    const auto push = [&](ShardId shard) {
      ++versions[Value(shard)];
      ASSERT_TRUE(core.OnReply(shard, Reply(PushOutcome::kApplied)).ok());
      ASSERT_TRUE(send(shard).ok());
    };
    int computed = 0;
    for (int action = 0; action < 30; ++action) {
      const Action next = core.Next();
      if (const auto* pull = std::get_if<PullShards>(&next)) {
        for (const auto& [shard, min_version, min_generation] : pull->pulls) {
          ASSERT_EQ(min_generation, Generation{0});
          // A shard answers once it has the version, which the other member's pushes ensure.
          versions[Value(shard)] = std::max(versions[Value(shard)], Value(min_version));
          ASSERT_TRUE(send(shard).ok());
        }
      } else if (const auto* excuse = std::get_if<ExcuseShards>(&next)) {
        ASSERT_EQ(computed, 0);
        ASSERT_EQ(std::ranges::count(excuse->shards, kShard0), 0) << "leaves out what was named";
        for (const ShardId shard : excuse->shards) push(shard);
      } else {
        const auto& compute = std::get<ComputeBatches>(next);
        for (const uint64_t version : versions)
          ASSERT_EQ(compute.batches, (BatchRanges{{2 * version + 1}}));
        Begin(core);
        for (uint32_t i = 0; i < versions.size(); ++i) push(ShardId{i});
        core.OnBatchesDone();
        ++computed;
      }
    }
    ASSERT_GE(computed, 26);  // The rest are two pulls and at most two rounds of excuses.
  }
}

TEST(WorkerCoreTest, AUnitThatComesBeforeAPushIsBegunIsNotPartOfIt) {
  WorkerCore core({.shards = 1, .quantum = 8});
  core.OnUnit({.id = 1, .first = 0, .batches = 4});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(0)).ok());
  ASSERT_EQ(core.Next(), Action(ComputeBatches{{{0, 4}}, true}));
  core.OnUnit({.id = 2, .first = 20, .batches = 8});

  core.OnBatchesBegun({{0, 4}});
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  core.OnBatchesDone();

  EXPECT_EQ(core.progress(), (std::vector<UnitProgress>{{1, 4}, {2, 0}}));
}

TEST(WorkerCoreTest, TheCoordinatorMayNameFewerBatchesForTheNextPushes) {
  WorkerCore core({.shards = 1, .quantum = 8});
  core.OnUnit({.id = 1, .first = 0, .batches = 16});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(0)).ok());
  for (const auto& [named, taken] : {std::pair(3, 3), {0, 1}, {99, 8}}) {
    core.OnSteps(named);
    EXPECT_EQ(core.Next(), Action(ComputeBatches{{{0, static_cast<uint64_t>(taken)}}, true}));
  }
}

TEST(WorkerCoreTest, APushStandsForTheBatchesThatWereAtHandWhenItBegan) {
  WorkerCore core({.shards = 1, .quantum = 3});
  core.OnUnit({.id = 1, .first = 0, .batches = 4});
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(0)).ok());
  ASSERT_EQ(core.Next(), Action(ComputeBatches{{{0, 3}}, true}));
  Begin(core);
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kApplied)).ok());
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(1)).ok());
  core.OnBatchesDone();
  EXPECT_EQ(core.progress(), (std::vector<UnitProgress>{{1, 3}}));

  ASSERT_EQ(core.Next(), Action(ComputeBatches{{{3, 1}}, true}));
  Begin(core);
  core.OnUnit({.id = 2, .first = 8, .batches = 2});
  core.OnNoMoreUnits();

  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{3, 1}}, true}))
      << "not with those that came later";
  EXPECT_TRUE(core.TermsOfPush(kShard0).pull);
  EXPECT_EQ(core.TermsOfPush(kShard0).clock, WorkerClock{2}) << "pushes, not batches";
  ASSERT_TRUE(core.OnReply(kShard0, Reply(PushOutcome::kTooStale)).ok());
  core.OnBatchesDone();
  ASSERT_TRUE(core.OnWeights(kShard0, Weights(5)).ok());
  EXPECT_EQ(core.Next(), Action(ComputeBatches{{{3, 1}, {8, 2}}, false})) << "named again";
}

}  // namespace
}  // namespace slipstream
