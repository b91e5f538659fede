#include "common/memory/block_locks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

namespace slipstream {
namespace {

constexpr size_t kBlock = BlockLocks::kBlockValues;

using Parts = std::vector<std::pair<size_t, size_t>>;

Parts PartsOf(size_t begin, size_t end) {
  BlockLocks locks(3 * kBlock + 5);
  Parts parts;
  locks.ForEachBlock(begin, end, [&](size_t from, size_t to) { parts.emplace_back(from, to); });
  return parts;
}

TEST(BlockLocksTest, CutsARangeWhereBlocksEnd) {
  EXPECT_EQ(PartsOf(0, 0), Parts());
  EXPECT_EQ(PartsOf(3, 9), (Parts{{3, 9}}));
  EXPECT_EQ(PartsOf(kBlock, 2 * kBlock), (Parts{{kBlock, 2 * kBlock}}));
  EXPECT_EQ(PartsOf(kBlock - 1, 3 * kBlock + 5), (Parts{{kBlock - 1, kBlock},
                                                        {kBlock, 2 * kBlock},
                                                        {2 * kBlock, 3 * kBlock},
                                                        {3 * kBlock, 3 * kBlock + 5}}));
}

TEST(BlockLocksTest, NoChangeOfAValueIsLost) {
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  std::vector<int> values(2 * kBlock + 1);
  BlockLocks locks(values.size());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        locks.ForEachBlock(0, values.size(), [&](size_t begin, size_t end) {
          for (size_t at = begin; at < end; ++at) ++values[at];
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(values, std::vector<int>(values.size(), kThreads * kEach));
}

}  // namespace
}  // namespace slipstream
