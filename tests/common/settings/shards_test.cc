#include "common/settings/shards.h"

#include <gtest/gtest.h>

#include <limits>

namespace slipstream {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

// In MiB: a fixed part, and the versions that are reused for 4 workers, of one MiB each.
constexpr uint64_t kOf4 = 64 + 4;

RunSpec SpecOf(uint32_t workers, RuleKind rule) {
  RunSpec run;
  run.cluster.workers = workers;
  run.optimizer.kind = rule;
  return run;
}

TEST(ShardsTest, CountsTwoVersionsEachGradientUnderWayAndTheStateTwice) {
  // The shard has one MiB of weights.
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, SpecOf(1, RuleKind::kSgd)), (3 + 1 + 64) * kMib);
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, SpecOf(4, RuleKind::kSgd)), (6 + kOf4) * kMib);
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, SpecOf(4, RuleKind::kMomentum)), (8 + kOf4) * kMib);
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, SpecOf(4, RuleKind::kAdamW)), (10 + kOf4) * kMib);
}

TEST(ShardsTest, CountsTheBasesOfEachGradientUnderWayWhereTheyAreKept) {
  RunSpec run = SpecOf(4, RuleKind::kSgd);
  run.training.pipeline_depth = 2;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (2 + 8 + kOf4) * kMib);

  run.optimizer.staleness_scaling = StalenessScaling::kDelayCompensated;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (2 + 24 + kOf4) * kMib);
}

TEST(ShardsTest, CountsTheVersionThatEachWorkerWithFreeLanesReadsBesideItsPushes) {
  RunSpec run = SpecOf(4, RuleKind::kSgd);
  run.training.pipeline_depth = 2;
  run.worker.lanes = WorkerSpec::Lanes::kFree;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (2 + 8 + 4 + kOf4) * kMib);
}

TEST(ShardsTest, CountsAVersionAndItsStateOnceMoreWhereCheckpointsAreMade) {
  RunSpec run = SpecOf(4, RuleKind::kSgd);
  run.durability.level = DurabilitySpec::Level::kCheckpoint;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (6 + 1 + kOf4) * kMib);

  run.optimizer.kind = RuleKind::kAdamW;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (10 + 3 + kOf4) * kMib);
  EXPECT_EQ(MembersWithin(ShardBytesNeeded(kMib / 4, run), kMib / 4, run), 4u);
}

TEST(ShardsTest, CountsTheVersionFromWhichARoundIsDoneAgain) {
  RunSpec run = SpecOf(4, RuleKind::kSgd);
  run.cluster.on_worker_loss = ClusterSpec::OnWorkerLoss::kWait;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (6 + kOf4) * kMib);

  run.consistency.policy = PolicyKind::kHardsync;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (6 + 1 + kOf4) * kMib);
}

TEST(ShardsTest, CountsThePushesAndTheirAnswersThatWaitForTheLog) {
  RunSpec run = SpecOf(4, RuleKind::kSgd);
  run.training.pipeline_depth = 2;
  run.durability.level = DurabilitySpec::Level::kSynced;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (2 + 8 + 8 + 1 + kOf4) * kMib);

  run.optimizer.staleness_scaling = StalenessScaling::kDelayCompensated;
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, run), (2 + 24 + 8 + 24 + 1 + kOf4) * kMib)
      << "with the bases that a checkpoint holds";
  EXPECT_EQ(MembersWithin(ShardBytesNeeded(kMib / 4, run), kMib / 4, run), 4u);
}

TEST(ShardsTest, TellsHowManyWorkersAShardHasMemoryFor) {
  RunSpec run = SpecOf(4, RuleKind::kMomentum);
  EXPECT_EQ(MembersWithin(ShardBytesNeeded(kMib / 4, run), kMib / 4, run), 4u);
  EXPECT_EQ(MembersWithin(ShardBytesNeeded(kMib / 4, run) - 1, kMib / 4, run), 3u);
  run.training.pipeline_depth = 2;
  EXPECT_EQ(MembersWithin(ShardBytesNeeded(kMib / 4, run) + 4 * kMib, kMib / 4, run), 6u);
  EXPECT_EQ(MembersWithin(10 * kMib, kMib / 4, run), 0u) << "not even for the weights";
  EXPECT_EQ(MembersWithin(std::numeric_limits<uint64_t>::max(), kMib / 4, run), 4096u);
}

TEST(ShardsTest, BoundsTheVersionsThatAreReusedByWorkersAndBytes) {
  EXPECT_EQ(VersionsReused(kMib / 4, 7), 7u);
  EXPECT_EQ(VersionsReused(kMib / 4, 4096), 256u);
  EXPECT_EQ(VersionsReused(256 * kMib, 7), 0u);
  EXPECT_EQ(VersionsReused(0, 7), 7u);
}

TEST(ShardsTest, CountsThePushesAmongThem) {
  RunSpec run = SpecOf(4, RuleKind::kMomentum);
  run.training.pipeline_depth = 2;
  EXPECT_EQ(ShardPushBytes(kMib / 4, run), 8 * kMib);
  EXPECT_EQ(ShardPushBytes(std::numeric_limits<uint64_t>::max() / 4, run),
            std::numeric_limits<uint64_t>::max());
}

TEST(ShardsTest, SaturatesWhereTheNumberWouldNotFit) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

  EXPECT_EQ(ShardBytesNeeded(kMax / 4, SpecOf(4, RuleKind::kSgd)), kMax);
}

TEST(ShardsTest, NamesBytesInTheLargestUnitThatFits) {
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(5 * kMib * 1024), "5.0 GiB");
}

}  // namespace
}  // namespace slipstream
