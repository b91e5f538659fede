#include "common/local/shared_arena.h"

#include <gtest/gtest.h>

#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace slipstream {
namespace {

// Runs on normal pages and on large pages.
class SharedArenaTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<float>(i % 1000);
    }
  }

  static std::vector<float> Copied(const ForeignArena& arena, uint64_t begin, size_t count) {
    std::vector<float> values(count);
    arena.Copy(begin, std::as_writable_bytes(std::span(values)));
    return values;
  }

  /// Returns this process's resident memory as the kernel counts it, including pages shared with
  /// others.
  static size_t ResidentBytes() {
    std::ifstream status("/proc/self/smaps_rollup");
    std::string word;
    size_t kib = 0;
    while (status >> word) {
      if (word == "Rss:" && status >> kib) return kib << 10;
    }
    return 0;
  }

  const SharedArena arena_ = SharedArena::Make(1, GetParam()).value();
  const std::span<float> values_ = arena_.part(0);
};

TEST_P(SharedArenaTest, OthersCopyWhatLiesAtAPlace) {
  const ForeignArena foreign = ForeignArena::Open(arena_.file()).value();
  const std::span<const float> part = values_.subspan(1234, 567);

  EXPECT_GE(foreign.size(), values_.size_bytes());
  EXPECT_EQ(arena_.Position(part), 1234 * sizeof(float));
  EXPECT_EQ(Copied(foreign, arena_.Position(part), part.size()),
            std::vector<float>(part.begin(), part.end()));
}

TEST_P(SharedArenaTest, WhatWasForgottenCanBeCopiedAgain) {
  ForeignArena foreign = ForeignArena::Open(arena_.file()).value();
  foreign.DropCopied();
  const size_t half = GetParam() / 2;
  for (int i = 0; i < 2; ++i) {
    for (const size_t first : {half, size_t{0}}) {
      const std::span<const float> part = values_.subspan(first, half);
      EXPECT_EQ(Copied(foreign, arena_.Position(part), half),
                std::vector<float>(part.begin(), part.end()));
      foreign.Forget(arena_.Position(part), part.size_bytes());
      values_[first + 1] = static_cast<float>(i);
    }
  }
}

TEST_P(SharedArenaTest, WhatWasForgottenIsNoMemoryOfTheReaders) {
  ForeignArena foreign = ForeignArena::Open(arena_.file()).value();
  foreign.DropCopied();
  const size_t piece = 4096;
  std::vector<float> values(piece);
  const size_t before = ResidentBytes();
  ASSERT_GT(before, 0u) << "the kernel does not say";
  for (size_t at = 0; at + piece <= GetParam(); at += piece) {
    foreign.Copy(at * sizeof(float), std::as_writable_bytes(std::span(values)));
    foreign.Forget(at * sizeof(float), piece * sizeof(float));
  }
  EXPECT_LT(ResidentBytes(), before + values_.size_bytes() / 2);
}

TEST_P(SharedArenaTest, PartsHavePagesOfTheirOwn) {
  const SharedArena two = SharedArena::Make(2, GetParam() + 1).value();
  const auto distance = static_cast<size_t>(two.part(1).data() - two.part(0).data());
  EXPECT_EQ(distance * sizeof(float) % 4096, 0u);
  EXPECT_GT(distance, GetParam());
  two.part(0)[0] = 1;
  two.part(1)[GetParam()] = 2;

  const ForeignArena foreign = ForeignArena::Open(two.file()).value();
  EXPECT_EQ(Copied(foreign, two.Position(two.part(0)), 1)[0], 1);
  EXPECT_EQ(Copied(foreign, two.Position(two.part(1)), GetParam() + 1).back(), 2);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SharedArenaTest,
                         testing::Values(size_t{100} << 10, size_t{8} << 20),
                         [](const auto& size) { return std::to_string(size.param); });

}  // namespace
}  // namespace slipstream
