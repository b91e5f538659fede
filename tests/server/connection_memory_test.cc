#include "server/connection_memory.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

TEST(ConnectionMemoryTest, IsWhatTheShardLeavesOfNineTenths) {
  RunSpec run;
  run.cluster.workers = 4;
  run.optimizer.kind = RuleKind::kSgd;

  // The shard needs two versions of 100 MiB, two more that are used again, and a fixed part. Pushes
  // lie in the connections' memory.
  EXPECT_EQ(ConnectionMemory::BytesBeside(25 * kMib, run, 2000 * kMib), (1800 - 400 - 64) * kMib);
}

TEST(ConnectionMemoryTest, AlwaysHasRoomForThePushesOfAllGradientsUnderWay) {
  RunSpec run;
  run.cluster.workers = 4;

  EXPECT_EQ(ConnectionMemory::BytesBeside(25 * kMib, run, 500 * kMib), (400 + 64) * kMib);
}

}  // namespace
}  // namespace slipstream
