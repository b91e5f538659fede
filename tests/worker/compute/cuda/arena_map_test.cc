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
  map.Append({10, 138});  // Ends where the next tensor may begin.
  map.Append({138, 139});
  return map;
}

TEST(ArenaMapTest, EachTensorBeginsAligned) {
  const ArenaMap map = ThreeTensors();

  EXPECT_EQ(map.OnDevice(0), 0u);
  EXPECT_EQ(map.OnDevice(9), 9u);
  EXPECT_EQ(map.OnDevice(10), 12u);
  EXPECT_EQ(map.OnDevice(137), 139u);
  EXPECT_EQ(map.OnDevice(138), 140u);
  EXPECT_EQ(map.size(), 144u);
}

TEST(ArenaMapTest, RangesAreCutWhereThereAreGaps) {
  const ArenaMap map = ThreeTensors();

  EXPECT_EQ(PartsOf(map, {0, 139}), (std::vector<Part>{{0, 0, 10}, {10, 12, 129}}));
  EXPECT_EQ(PartsOf(map, {4, 12}), (std::vector<Part>{{4, 4, 6}, {10, 12, 2}}));
  EXPECT_EQ(PartsOf(map, {20, 30}), (std::vector<Part>{{20, 22, 10}}));
  EXPECT_TRUE(PartsOf(map, {5, 5}).empty());
}

TEST(ArenaMapTest, ANetWithoutParametersTakesNothing) {
  const ArenaMap map;

  EXPECT_EQ(map.size(), 0u);
  EXPECT_TRUE(PartsOf(map, {0, 0}).empty());
}

}  // namespace
}  // namespace slipstream::cuda
