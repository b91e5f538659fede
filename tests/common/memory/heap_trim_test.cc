#include "common/memory/heap_trim.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace slipstream {
namespace {

size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages_in_all = 0;
  size_t pages_resident = 0;
  file >> pages_in_all >> pages_resident;
  return pages_resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

constexpr size_t kBlock = size_t{64} << 10;
constexpr size_t kMany = size_t{256} << 20;

std::vector<std::unique_ptr<char[]>> Fill(size_t bytes) {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t i = 0; i < bytes / kBlock; ++i) {
    blocks.emplace_back(new char[kBlock]);
    std::memset(blocks.back().get(), 1, kBlock);
  }
  return blocks;
}

class HeapTrimTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef SLIPSTREAM_SANITIZER
    GTEST_SKIP() << "a sanitizer brings a heap of its own";
#endif
    mallopt(M_TRIM_THRESHOLD, -1);  // The same as in servers and workers.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
  }

  size_t LookForAWhile() {
    size_t given_back = 0;
    for (size_t i = 0; i < HeapTrim::kPause + HeapTrim::kLooks; ++i) given_back += trim_.Look();
    return given_back;
  }

  HeapTrim trim_;
};

TEST_F(HeapTrimTest, APeakThatHasPassedIsGivenBackOnce) {
  { const auto blocks = Fill(kMany); }
  const size_t before = ResidentBytes();

  EXPECT_GT(LookForAWhile(), kMany / 2);

  EXPECT_LT(ResidentBytes(), before - kMany / 2);
  EXPECT_EQ(LookForAWhile(), 0u) << "there is nothing more";
}

TEST_F(HeapTrimTest, ASecondPeakIsGivenBackToo) {
  const auto used = Fill(kMany / 2);
  { const auto blocks = Fill(kMany); }
  EXPECT_GT(LookForAWhile(), kMany / 2);
  { const auto blocks = Fill(kMany); }
  EXPECT_GT(LookForAWhile(), kMany / 2);
}

TEST_F(HeapTrimTest, WhatIsUsedAgainAndAgainStays) {
  for (size_t i = 0; i < 2 * HeapTrim::kLooks; ++i) {
    { const auto blocks = Fill(i % 4 == 0 ? kMany : kBlock); }
    const auto used = Fill(i % 4 == 0 ? kMany : kBlock);
    EXPECT_EQ(trim_.Look(), 0u) << i;
  }
}

}  // namespace
}  // namespace slipstream
