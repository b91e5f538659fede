#include "server/service/shared_memory_use.h"

#include <gtest/gtest.h>

#include "common/memory/large_pages.h"

namespace slipstream {
namespace {

TEST(SharedMemoryUseTest, KeepsSmallArenasAsLongAsThereIsRoom) {
  SharedMemoryUse use;
  constexpr uint64_t kMost = kLargePagesBytesMin - 1;
  uint64_t kept = 0;
  while (use.Keep(kMost)) kept += kMost;
  EXPECT_GT(kept + kMost, SharedMemoryUse::kKeptBytesMax);
  EXPECT_LE(kept, SharedMemoryUse::kKeptBytesMax);
  EXPECT_FALSE(use.Keep(kMost));

  use.GiveBack(kMost);
  EXPECT_TRUE(use.Keep(kMost));
  EXPECT_FALSE(use.Keep(kMost));
}

TEST(SharedMemoryUseTest, KeepsNothingOfWhatLiesOnLargePages) {
  SharedMemoryUse use;
  EXPECT_FALSE(use.Keep(kLargePagesBytesMin));
  EXPECT_TRUE(use.Keep(4096)) << "and nothing is taken by it";
}

}  // namespace
}  // namespace slipstream
