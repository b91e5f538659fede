#include "common/layout/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/base/philox.h"
#include "common/model/net_shapes.h"
#include "common/model/presets.h"

namespace slipstream {
namespace {

TensorLayout LayoutOf(std::string_view preset) {
  return std::get<NetShapes>(InferShapes(*FindPreset(preset))).layout;
}

TensorLayout Flat(size_t values) {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("all", {values}).ok());
  return layout;
}

TensorLayout RandomLayout(RandomStream& random) {
  TensorLayout layout;
  const uint32_t tensors = 1 + random.Below(40);
  for (uint32_t i = 0; i < tensors; ++i) {
    const uint32_t size_max = random.Below(3) == 0 ? 50'000 : 1'200;
    EXPECT_TRUE(layout.Append(std::to_string(i), {1 + random.Below(size_max)}).ok());
  }
  return layout;
}

/// The most values of one small tensor that lie apart from the rest of it, over all cuts.
size_t WorstScatter(const TensorLayout& layout, const ShardMap& map) {
  size_t worst = 0;
  for (uint32_t shard = 1; shard < map.shards(); ++shard) {
    const size_t cut = map.range(ShardId{shard}).begin;
    for (const Tensor& tensor : layout.tensors()) {
      const size_t end = tensor.offset + tensor.size();
      if (tensor.size() >= ShardMap::kWholeTensorValuesMax || cut <= tensor.offset || cut >= end) {
        continue;
      }
      worst = std::max(worst, std::min(cut - tensor.offset, end - cut));
    }
  }
  return worst;
}

TEST(ShardMapTest, RangesCoverTheVectorOnCutBoundariesAndAreBalanced) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    const TensorLayout layout = RandomLayout(random);
    const size_t granules = (layout.parameters() + ShardMap::kCutValues - 1) / ShardMap::kCutValues;
    const uint32_t shards = 1 + random.Below(static_cast<uint32_t>(std::min<size_t>(granules, 64)));

    const absl::StatusOr<ShardMap> map = ShardMap::Cut(layout, shards);

    ASSERT_TRUE(map.ok()) << map.status();
    ASSERT_EQ(map->shards(), shards);
    const double share = static_cast<double>(layout.parameters()) / shards;
    const double move_max = std::min<double>(ShardMap::kCutMoveValuesMax, share / 8 + 2);
    size_t begin = 0;
    for (uint32_t shard = 0; shard < shards; ++shard) {
      const ParameterRange range = map->range(ShardId{shard});
      ASSERT_EQ(range.begin, begin);
      ASSERT_EQ(range.begin % ShardMap::kCutValues, 0u);
      ASSERT_GT(range.size(), 0u);
      ASSERT_NEAR(static_cast<double>(range.size()), share,
                  2 * move_max + 2 * ShardMap::kCutValues);
      begin = range.end;
    }
    ASSERT_EQ(begin, layout.parameters());
  }
}

TEST(ShardMapTest, DoesNotScatterSmallTensorsAcrossLargeShards) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 1);
    TensorLayout layout = RandomLayout(random);
    ASSERT_TRUE(layout.Append("last", {100'000}).ok());

    // Shares of 8 × 1024 values and more let a cut move far enough to leave any small tensor.
    const uint32_t shards = 1 + random.Below(static_cast<uint32_t>(layout.parameters() / 8192 - 1));
    const absl::StatusOr<ShardMap> map = ShardMap::Cut(layout, shards);

    ASSERT_TRUE(map.ok()) << map.status();
    ASSERT_LT(WorstScatter(layout, *map), ShardMap::kCutValues);
  }
}

TEST(ShardMapTest, MovesASmallTensorWholeToTheSideWhereMoreOfItLies) {
  TensorLayout layout;
  ASSERT_TRUE(layout.Append("before", {16'000}).ok());
  ASSERT_TRUE(layout.Append("small", {800}).ok());
  ASSERT_TRUE(layout.Append("after", {15'600}).ok());

  const ShardMap map = *ShardMap::Cut(layout, 2);

  // The middle, 16,200, lies in the first half of the small tensor.
  EXPECT_EQ(map.range(ShardId{0}), (ParameterRange{0, 16'000}));
  EXPECT_EQ(map.range(ShardId{1}), (ParameterRange{16'000, 32'400}));
}

TEST(ShardMapTest, SplitsALargeTensorInEqualParts) {
  const ShardMap map = *ShardMap::Cut(Flat(4'096), 4);

  for (uint32_t shard = 0; shard < 4; ++shard) EXPECT_EQ(map.range(ShardId{shard}).size(), 1'024u);
}

TEST(ShardMapTest, CutsAModelIntoAsManyShardsAsItHasGranulesAndNoMore) {
  EXPECT_TRUE(ShardMap::Cut(Flat(33), 3).ok());
  EXPECT_FALSE(ShardMap::Cut(Flat(33), 4).ok());
  EXPECT_FALSE(ShardMap::Cut(Flat(33), 0).ok());
  EXPECT_FALSE(ShardMap::Cut(TensorLayout(), 1).ok());
}

TEST(ShardMapTest, OneShardOwnsEverything) {
  const ShardMap map = *ShardMap::Cut(LayoutOf("lenet5"), 1);

  EXPECT_EQ(map.range(ShardId{0}), (ParameterRange{0, 61'706}));
  EXPECT_EQ(map.parameters(), 61'706u);
}

TEST(ShardMapTest, FingerprintIsStableAndTellsLayoutsAndCutsApart) {
  const uint64_t two = ShardMap::Cut(LayoutOf("lenet5"), 2)->fingerprint();

  EXPECT_EQ(two, 4'593'232'217'350'548'232u);
  EXPECT_EQ(two, ShardMap::Cut(LayoutOf("lenet5"), 2)->fingerprint());
  EXPECT_NE(two, ShardMap::Cut(LayoutOf("lenet5"), 3)->fingerprint());
  EXPECT_NE(two, ShardMap::Cut(Flat(61'706), 2)->fingerprint());
}

}  // namespace
}  // namespace slipstream
