#include "server/storage/memory_budget.h"

#include <gtest/gtest.h>

#include <limits>

namespace slipstream {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

TEST(MemoryBudgetTest, CountsTwoVersionsEachGradientUnderWayAndTheStateTwice) {
  // One MiB of weights.
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, 1, {.kind = OptimizerSpec::Kind::kSgd}), (3 + 64) * kMib);
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, 4, {.kind = OptimizerSpec::Kind::kSgd}), (6 + 64) * kMib);
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, 4, {.kind = OptimizerSpec::Kind::kMomentum}),
            (8 + 64) * kMib);
  EXPECT_EQ(ShardBytesNeeded(kMib / 4, 4, {.kind = OptimizerSpec::Kind::kAdamW}), (10 + 64) * kMib);
}

TEST(MemoryBudgetTest, SaturatesWhereTheNumberWouldNotFit) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

  EXPECT_EQ(ShardBytesNeeded(kMax / 4, 4, {}), kMax);
}

TEST(MemoryBudgetTest, SomethingIsAvailableHere) { EXPECT_GT(AvailableMemoryBytes(), kMib); }

TEST(MemoryBudgetTest, NamesBytesInTheLargestUnitThatFits) {
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(5 * kMib * 1024), "5.0 GiB");
}

}  // namespace
}  // namespace slipstream
