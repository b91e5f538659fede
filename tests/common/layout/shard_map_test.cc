#include "common/layout/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
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

/// Returns, as a maximum over all cuts, the number of a small tensor's values that lie on the
/// smaller side of the cut.
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

    // If shares have at least 8 × 1024 values, a cut can move far enough to avoid any small tensor.
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

  // The middle is at 16,200, which lies in the first half of the small tensor.
  EXPECT_EQ(map.range(ShardId{0}), (ParameterRange{0, 16'000}));
  EXPECT_EQ(map.range(ShardId{1}), (ParameterRange{16'000, 32'400}));
}

TEST(ShardMapTest, SplitsALargeTensorInEqualParts) {
  const ShardMap map = *ShardMap::Cut(Flat(4'096), 4);

  for (uint32_t shard = 0; shard < 4; ++shard) EXPECT_EQ(map.range(ShardId{shard}).size(), 1'024u);
}

TEST(ShardMapTest, CutsASmallModelInEqualParts) {
  const ShardMap map = *ShardMap::Cut(Flat(10), 2);

  EXPECT_EQ(map.range(ShardId{0}), (ParameterRange{0, 5}));
  EXPECT_EQ(map.range(ShardId{1}), (ParameterRange{5, 10}));
  for (size_t values = 1; values <= 80; ++values) {
    for (uint32_t shards = 1; shards <= values; ++shards) {
      ASSERT_TRUE(ShardMap::Cut(Flat(values), shards).ok()) << values << " into " << shards;
    }
  }
}

TEST(ShardMapTest, CutsAModelIntoAsManyShardsAsItHasValuesAndNoMore) {
  const absl::Status one = ShardMap::Cut(Flat(1), 2).status();
  EXPECT_EQ(one.message(),
            "2 servers share the model, and it has only 1 parameter; use at most 1 server");
  EXPECT_FALSE(ShardMap::Cut(Flat(33), 34).ok());
  EXPECT_FALSE(ShardMap::Cut(Flat(33), 0).ok());
  EXPECT_FALSE(ShardMap::Cut(TensorLayout(), 1).ok());
}

/// Returns the smallest possible size of the largest shard if whole `tensors` are divided among
/// `shards`.
size_t LeastLargest(std::span<const Tensor> tensors, uint32_t shards) {
  size_t all = 0;
  for (const Tensor& tensor : tensors) all += tensor.size();
  if (shards == 1) return all;
  size_t least = all;
  size_t before = 0;
  for (size_t first = 1; first + shards - 1 <= tensors.size(); ++first) {
    before += tensors[first - 1].size();
    least = std::min(least, std::max(before, LeastLargest(tensors.subspan(first), shards - 1)));
  }
  return least;
}

TEST(ShardMapTest, KeepsTensorsWholeWhereAsked) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 2);
    const TensorLayout layout = RandomLayout(random);
    const auto tensors = static_cast<uint32_t>(layout.tensors().size());
    const uint32_t shards = 1 + random.Below(tensors);

    const absl::StatusOr<ShardMap> map =
        ShardMap::Cut(layout, shards, {.keeps_tensors_whole = true});

    ASSERT_TRUE(map.ok()) << map.status();
    ASSERT_EQ(map->shards(), shards);
    size_t end = 0;
    size_t largest = 0;
    for (uint32_t shard = 0; shard < shards; ++shard) {
      const ParameterRange range = map->range(ShardId{shard});
      ASSERT_EQ(range.begin, end);
      ASSERT_TRUE(std::ranges::count(layout.tensors(), range.begin, &Tensor::offset) == 1);
      end = range.end;
      largest = std::max(largest, range.size());
    }
    ASSERT_EQ(end, layout.parameters());
    if (shards <= 3) {
      ASSERT_LE(largest, 2 * LeastLargest(layout.tensors(), shards));
    }
    ASSERT_FALSE(ShardMap::Cut(layout, tensors + 1, {.keeps_tensors_whole = true}).ok());
  }
}

TEST(ShardMapTest, TakesTheRangesThatAPeerHasCutIfTheyCoverTheModel) {
  const TensorLayout layout = LayoutOf("lenet5");
  const ShardMap map = *ShardMap::Cut(layout, 2, {.keeps_tensors_whole = true});

  EXPECT_EQ(*ShardMap::FromRanges(layout, {map.range(ShardId{0}), map.range(ShardId{1})}), map);
  EXPECT_FALSE(ShardMap::FromRanges(layout, {}).ok());
  EXPECT_FALSE(ShardMap::FromRanges(layout, {{0, 100}, {100, 100}, {100, 61'706}}).ok());
  EXPECT_FALSE(ShardMap::FromRanges(layout, {{0, 100}, {116, 61'706}}).ok());
  EXPECT_FALSE(ShardMap::FromRanges(layout, {{0, 100}, {100, 61'707}}).ok());
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
