#include "worker/core/fragments.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace slipstream {
namespace {

/// Returns the shards by the step after which they leave, of a push of `steps` steps.
std::map<uint64_t, std::vector<ShardId>> Departures(const Fragments& fragments, uint64_t steps) {
  std::map<uint64_t, std::vector<ShardId>> shards;
  for (uint64_t taken = 1; taken <= steps; ++taken) {
    const std::vector<ShardId> leaving = fragments.LeavingAfter(taken, steps);
    if (!leaving.empty()) shards[taken] = leaving;
  }
  return shards;
}

using Expected = std::map<uint64_t, std::vector<ShardId>>;

TEST(FragmentsTest, LeaveEvenlySpreadAndThatOfShardZeroAtTheEnd) {
  const Fragments fragments(4, 4, 0);

  EXPECT_EQ(Departures(fragments, 8),
            (Expected{{2, {ShardId{1}}}, {4, {ShardId{2}}}, {6, {ShardId{3}}}}));
}

TEST(FragmentsTest, HoldEachPthShard) {
  const Fragments fragments(2, 6, 0);

  EXPECT_EQ(Departures(fragments, 6), (Expected{{3, {ShardId{1}, ShardId{3}, ShardId{5}}}}));
}

TEST(FragmentsTest, LeaveInOrderOfTheirNumbersWhateverTheSteps) {
  const Fragments fragments(5, 5, 0);

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

TEST(FragmentsTest, AModelThatIsNotCutLeavesAtTheEnd) {
  EXPECT_EQ(Departures(Fragments(), 8), Expected());
}

}  // namespace
}  // namespace slipstream
