#include "server/service/shared_memory_room.h"

#include <gtest/gtest.h>

#include "common/memory/large_pages.h"

namespace slipstream {
namespace {

TEST(SharedMemoryRoomTest, KeepsSmallArenasAsLongAsThereIsRoom) {
  SharedMemoryRoom room;
  constexpr uint64_t kMost = kLargePagesBytesMin - 1;
  uint64_t kept = 0;
  while (room.Keep(kMost)) kept += kMost;
  EXPECT_GT(kept + kMost, SharedMemoryRoom::kKeptBytesMax);
  EXPECT_LE(kept, SharedMemoryRoom::kKeptBytesMax);
  EXPECT_FALSE(room.Keep(kMost));

  room.GiveBack(kMost);
  EXPECT_TRUE(room.Keep(kMost));
  EXPECT_FALSE(room.Keep(kMost));
}

TEST(SharedMemoryRoomTest, KeepsNothingOfWhatLiesOnLargePages) {
  SharedMemoryRoom room;
  EXPECT_FALSE(room.Keep(kLargePagesBytesMin));
  EXPECT_TRUE(room.Keep(4096)) << "and nothing is taken by it";
}

}  // namespace
}  // namespace slipstream
