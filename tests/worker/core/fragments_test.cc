#include "worker/core/fragments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace slipstream {
namespace {

/// Returns the shards by the step after which they leave, of a push of `steps` steps to five
/// shards.
std::map<uint64_t, std::vector<ShardId>> Departures(const Fragments& fragments, uint64_t steps) {
  std::vector<ShardId> unsent = {ShardId{0}, ShardId{1}, ShardId{2}, ShardId{3}, ShardId{4}};
  std::map<uint64_t, std::vector<ShardId>> shards;
  for (uint64_t taken = 1; taken <= steps; ++taken) {
    const std::vector<ShardId> leaving = fragments.LeavingAfter(taken, steps, unsent);
    std::erase_if(unsent, [&](ShardId shard) { return std::ranges::count(leaving, shard) > 0; });
    if (!leaving.empty()) shards[taken] = leaving;
  }
  return shards;
}

using Expected = std::map<uint64_t, std::vector<ShardId>>;

TEST(FragmentsTest, LeaveEvenlySpreadAndThatOfShardZeroAtTheEnd) {
  const Fragments fragments(5, 0);

  EXPECT_EQ(Departures(fragments, 10),
            (Expected{{2, {ShardId{1}}}, {4, {ShardId{2}}}, {6, {ShardId{3}}}, {8, {ShardId{4}}}}));
}

TEST(FragmentsTest, HoldEachPthShard) {
  const Fragments fragments(2, 0);

  EXPECT_EQ(Departures(fragments, 6), (Expected{{3, {ShardId{1}, ShardId{3}}}}));
}

TEST(FragmentsTest, LeaveInOrderOfTheirNumbersWhateverTheSteps) {
  const Fragments fragments(5, 0);

  for (uint64_t steps = 1; steps <= 20; ++steps) {
    std::vector<ShardId> left;
    for (const auto& [taken, shards] : Departures(fragments, steps)) {
      EXPECT_LT(taken, steps);
      left.insert(left.end(), shards.begin(), shards.end());
    }
    std::vector<ShardId> expected;
    if (steps > 1) expected = {ShardId{1}, ShardId{2}, ShardId{3}, ShardId{4}};
    EXPECT_EQ(left, expected) << steps << " steps";
  }
}

TEST(FragmentsTest, OneThatCouldNotLeaveLeavesWithTheNext) {
  const Fragments fragments(3, 0);
  const std::vector<ShardId> all = {ShardId{0}, ShardId{1}, ShardId{2}};

  EXPECT_EQ(fragments.LeavingAfter(2, 3, all), (std::vector<ShardId>{ShardId{1}, ShardId{2}}));
}

TEST(FragmentsTest, AModelThatIsNotCutLeavesAtTheEnd) {
  EXPECT_EQ(Departures(Fragments(), 8), Expected());
}

}  // namespace
}  // namespace slipstream
