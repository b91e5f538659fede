#include "server/status/version_skew.h"

#include <gtest/gtest.h>

#include "common/base/philox.h"

namespace slipstream {
namespace {

absl::Time At(int64_t milliseconds) { return absl::UnixEpoch() + absl::Milliseconds(milliseconds); }

TEST(VersionSkewTest, IsNothingForOneShard) {
  VersionSkew skew;
  EXPECT_EQ(skew.Skew(), 0u);
  skew.Note(ShardId{0}, Version{100}, At(0));
  EXPECT_EQ(skew.Skew(), 0u);
}

TEST(VersionSkewTest, ComparesVersionsOfOneMoment) {
  VersionSkew skew;
  skew.Note(ShardId{0}, Version{0}, At(0));
  skew.Note(ShardId{0}, Version{100}, At(1000));
  skew.Note(ShardId{1}, Version{50}, At(500));
  EXPECT_EQ(skew.Skew(), 0u) << "shard 0 was at 50, too, half-way between its reports";

  skew.Note(ShardId{1}, Version{97}, At(1000));
  EXPECT_EQ(skew.Skew(), 3u);
}

TEST(VersionSkewTest, ShardsInStepHaveNoneWhateverTheMomentsOfTheirReports) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    VersionSkew skew;
    int64_t now = 0;
    for (int report = 0; report < 100; ++report) {
      now += 1 + random.Below(250);
      // All versions rise by one every 4 ms.
      skew.Note(ShardId{random.Below(3)}, Version{static_cast<uint64_t>(now / 4)}, At(now));
    }

    EXPECT_LE(skew.Skew(), 1u);
  }
}

TEST(VersionSkewTest, AShardThatStoodStillIsBehind) {
  VersionSkew skew;
  for (int64_t report = 0; report < 10; ++report) {
    skew.Note(ShardId{0}, Version{static_cast<uint64_t>(report * 100)}, At(report * 100));
    skew.Note(ShardId{1}, Version{7}, At(report * 100 + 50));
  }

  EXPECT_EQ(skew.Skew(), 893u);
}

TEST(VersionSkewTest, AShardSilentForLongIsComparedWithTheOldestReportsKept) {
  VersionSkew skew;
  skew.Note(ShardId{1}, Version{10}, At(0));
  for (int64_t report = 1; report <= 40; ++report) {
    skew.Note(ShardId{0}, Version{static_cast<uint64_t>(report)}, At(report * 100));
  }

  EXPECT_EQ(skew.Skew(), 15u) << "25, the oldest of the last 16, against 10";
}

}  // namespace
}  // namespace slipstream
