#include "common/layout/tensor_parts.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/layout/shard_map.h"

namespace slipstream {
namespace {

TensorLayout Layout(const std::vector<std::pair<std::string, std::vector<uint64_t>>>& tensors) {
  TensorLayout layout;
  for (const auto& [name, shape] : tensors) EXPECT_TRUE(layout.Append(name, shape).ok());
  return layout;
}

TEST(TensorPartsTest, NamesAPartByItsTensorRangeAndShape) {
  const TensorLayout layout = Layout({{"a", {4, 3}}, {"b", {2}}, {"c", {}}, {"d", {5}}});

  EXPECT_EQ(PartOf(layout, {5, 17}),
            Layout({{"a[5:12 of 4x3]", {7}}, {"b", {2}}, {"c", {}}, {"d[0:2 of 5]", {2}}}));
  EXPECT_EQ(PartOf(layout, {0, 20}), layout);
  EXPECT_EQ(ParsePart("a[5:12 of 4x3]"),
            (TensorPart{.name = "a", .range = {5, 12}, .shape = {4, 3}}));
}

TEST(TensorPartsTest, KnowsNamesThatAreNoPart) {
  for (const char* name :
       {"", "a", "a[0:1]", "a[1:1 of 2]", "a[01:2 of 3]", "a[ 0:2 of 3]", "a[0:2 of 3x]",
        "a[0:2 of x3]", "a[0:2 of -3]", "a[0:2 of 3] ", "a[x:2 of 3]", "a[0 of 3:2]", "]", "[]"}) {
    EXPECT_EQ(ParsePart(name), std::nullopt) << name;
  }
}

TEST(TensorPartsTest, ATensorWhoseNameLooksLikeAPartIsNoneOfAnother) {
  const TensorLayout layout = Layout({{"a[0:2 of 4]", {2}}, {"a", {4}}, {"[]", {}}});

  const TensorLayout parts[] = {PartOf(layout, {0, 4}), PartOf(layout, {4, 7})};

  EXPECT_EQ(JoinParts(parts).value(), layout);
}

TEST(TensorPartsTest, ALongNameIsCutAndStaysUnique) {
  const std::string name(TensorLayout::kNameBytesMax - 1, 'x');
  const TensorLayout layout = Layout({{name + "1", {10}}, {name + "2", {10}}});

  std::set<std::string> names;
  for (const ParameterRange range : {ParameterRange{0, 5}, {5, 10}, {10, 15}, {15, 20}}) {
    const TensorLayout part = PartOf(layout, range);
    ASSERT_EQ(part.tensors().size(), 1u);
    names.insert(ParsePart(part.tensors()[0].name).value().name);
  }

  EXPECT_EQ(names.size(), 2u) << "the parts of a tensor share its name";
}

TEST(TensorPartsTest, TheCutsOfAModelJoinToTheModel) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    TensorLayout layout;
    for (uint64_t i = 0; i < 1 + random() % 6; ++i) {
      ASSERT_TRUE(
          layout.Append("t" + std::to_string(i), {1 + random() % 50, 1 + random() % 90}).ok());
    }
    const auto shards = static_cast<uint32_t>(1 + random() % 5);
    const absl::StatusOr<ShardMap> map = ShardMap::Cut(layout, shards);
    if (!map.ok()) continue;  // The model has too few values.

    std::vector<TensorLayout> parts;
    for (uint32_t shard = 0; shard < shards; ++shard) {
      parts.push_back(PartOf(layout, map->range(ShardId{shard})));
      ASSERT_EQ(parts.back().parameters(), map->range(ShardId{shard}).size());
    }

    EXPECT_EQ(JoinParts(parts).value(), layout);
  }
}

TEST(TensorPartsTest, NamesTheTensorWhoseValuesAreMissing) {
  const TensorLayout layout = Layout({{"a", {10}}, {"b", {10}}});
  const TensorLayout first = PartOf(layout, {0, 4});
  const TensorLayout second = PartOf(layout, {4, 14});
  const TensorLayout third = PartOf(layout, {14, 20});
  const auto reason = [](const std::vector<TensorLayout>& parts) {
    return std::string(JoinParts(parts).status().message());
  };

  EXPECT_EQ(reason({second, third}), "the values of a before 4 are missing");
  EXPECT_EQ(reason({first, third}), "the values of b before 4 are missing");
  EXPECT_EQ(reason({first, second}), "the values of b from 4 on are missing");
  EXPECT_EQ(reason({first}), "the values of a from 4 on are missing");
}

}  // namespace
}  // namespace slipstream
