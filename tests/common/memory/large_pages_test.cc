#include "common/memory/large_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <limits>

namespace slipstream {
namespace {

constexpr size_t kBig = 5 * kLargePage;

TEST(LargePagesTest, SmallSizesStayAndLargeOnesBecomeWholePages) {
  EXPECT_EQ(MappedSize(0), 1u);
  EXPECT_EQ(MappedSize(5000), 5000u);
  EXPECT_EQ(MappedSize(kBig), kBig);
  EXPECT_EQ(MappedSize(kBig + 1), kBig + kLargePage);
}

TEST(LargePagesTest, ALargeMappingBeginsOnAPageAndIsZeroAndWritable) {
  for (int i = 0; i < 10; ++i) {
    auto* const pages = static_cast<char*>(
        MapAligned(kBig, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
    ASSERT_NE(pages, nullptr);
    PreferLargePages(pages, kBig);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pages) % kLargePage, 0u);
    for (size_t at = 0; at < kBig; at += 4096) ASSERT_EQ(pages[at], 0);
    pages[kBig - 1] = 1;
    EXPECT_EQ(munmap(pages, kBig), 0);
  }
}

TEST(LargePagesTest, AMemfdStaysZeroAndShared) {
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, kBig), 0);
  auto* const pages =
      static_cast<char*>(MapAligned(kBig, PROT_READ | PROT_WRITE, MAP_SHARED, file));
  ASSERT_NE(pages, nullptr);
  MakeLargePages(pages, kBig);
  for (size_t at = 0; at < kBig; at += 4096) ASSERT_EQ(pages[at], 0);
  pages[kBig - 1] = 7;
  char byte = 0;
  EXPECT_EQ(pread(file, &byte, 1, kBig - 1), 1);
  EXPECT_EQ(byte, 7);
  munmap(pages, kBig);
  close(file);
}

TEST(LargePagesTest, WhatCannotBeHadIsNull) {
  for (const size_t size : {std::numeric_limits<size_t>::max() - 1,
                            std::numeric_limits<size_t>::max() / 4 / kLargePage * kLargePage}) {
    EXPECT_EQ(MapAligned(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1), nullptr);
  }
}

}  // namespace
}  // namespace slipstream
