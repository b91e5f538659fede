#include "worker/compute/cuda/arena_map.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace slipstream::cuda {
namespace {

using Part = std::tuple<size_t, size_t, size_t>;

std::vector<Part> PartsOf(const ArenaMap& map, ParameterRange range) {
  std::vector<Part> parts;
  map.ForEachPart(range, [&](size_t host, size_t device, size_t size) {
    parts.emplace_back(host, device, size);
  });
  return parts;
}

ArenaMap ThreeTensors() {
  ArenaMap map;
  map.Append({0, 10});
  map.Append({10, 138});  // Two lines exactly.
  map.Append({138, 139});
  return map;
}

TEST(ArenaMapTest, EachTensorBeginsAligned) {
  const ArenaMap map = ThreeTensors();

  EXPECT_EQ(map.OnDevice(0), 0u);
  EXPECT_EQ(map.OnDevice(9), 9u);
  EXPECT_EQ(map.OnDevice(10), ArenaMap::kAlignment);
  EXPECT_EQ(map.OnDevice(137), ArenaMap::kAlignment + 127);
  EXPECT_EQ(map.OnDevice(138), ArenaMap::kAlignment + 128);
  EXPECT_EQ(map.size(), ArenaMap::kAlignment * 4);
}

TEST(ArenaMapTest, RangesAreCutWhereTensorsMeet) {
  const ArenaMap map = ThreeTensors();

  EXPECT_EQ(PartsOf(map, {0, 139}), (std::vector<Part>{{0, 0, 10}, {10, 64, 128}, {138, 192, 1}}));
  EXPECT_EQ(PartsOf(map, {4, 12}), (std::vector<Part>{{4, 4, 6}, {10, 64, 2}}));
  EXPECT_EQ(PartsOf(map, {20, 30}), (std::vector<Part>{{20, 74, 10}}));
  EXPECT_TRUE(PartsOf(map, {5, 5}).empty());
}

TEST(ArenaMapTest, ANetWithoutParametersTakesNothing) {
  const ArenaMap map;

  EXPECT_EQ(map.size(), 0u);
  EXPECT_TRUE(PartsOf(map, {0, 0}).empty());
}

}  // namespace
}  // namespace slipstream::cuda
