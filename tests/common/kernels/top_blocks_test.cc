#include "common/kernels/top_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/philox.h"
#include "common/kernels/segments.h"
#include "tests/common/kernels/cut_payload.h"

namespace slipstream {
namespace {

constexpr size_t kBlock = 1024;

std::vector<std::byte> Encoded(const std::vector<float>& values) {
  std::vector<std::byte> bytes(EncodedBytes(Encoding::kTopK, values.size()));
  EncodeTop(values, bytes);
  return bytes;
}

std::vector<float> Decoded(const Segments& bytes) {
  std::vector<float> values(CountTopValues(bytes).value());
  DecodeTop(bytes, values);
  return values;
}

/// Returns what a block arrives as, by sorting all of it.
std::vector<float> Top(std::span<const float> block) {
  std::vector<size_t> places(block.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::stable_sort(
      places, [&](size_t a, size_t b) { return std::abs(block[a]) > std::abs(block[b]); });
  std::vector<float> arrived(block.size());
  for (size_t i = 0; i < std::min<size_t>(16, places.size()); ++i) {
    arrived[places[i]] = block[places[i]];
  }
  return arrived;
}

TEST(TopBlocksTest, KeepsTheSixteenLargestOfEachBlock) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 26);
    std::vector<float> values = RandomValues(random.Below(5000), random);
    // Few different magnitudes, so that many are equal.
    if (seed % 2 == 1) std::ranges::for_each(values, [](float& v) { v = std::round(v * 4); });

    const std::vector<float> decoded = Decoded({Encoded(values)});

    ASSERT_EQ(decoded.size(), values.size());
    for (size_t begin = 0; begin < values.size(); begin += kBlock) {
      const auto block = std::span(values).subspan(begin, std::min(kBlock, values.size() - begin));
      const auto arrived = std::span(decoded).subspan(begin, block.size());
      ASSERT_TRUE(std::ranges::equal(arrived, Top(block))) << "block from " << begin;
    }
  }
}

TEST(TopBlocksTest, DecodesWhereverItIsCut) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 27);
    const std::vector<std::byte> bytes = Encoded(RandomValues(random.Below(9000), random));
    Segments segments;
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t size = std::min<size_t>(random.Below(100), bytes.size() - begin);
      segments.push_back(std::span(bytes).subspan(begin, size));
      begin += size;
    }

    ASSERT_EQ(Decoded(segments), Decoded({bytes}));
  }
}

TEST(TopBlocksTest, TellsHowManyValuesItHolds) {
  for (const size_t count : {0, 1, 15, 16, 17, 1023, 1024, 1025, 5000}) {
    EXPECT_EQ(CountTopValues({Encoded(std::vector<float>(count, 1.0f))}), count);
  }
}

TEST(TopBlocksTest, WhatIsNoWholeBlockHoldsNothing) {
  for (const size_t size : {1, 97, 99}) {
    EXPECT_EQ(CountTopValues({std::vector<std::byte>(size)}), std::nullopt) << size;
  }
  std::vector<std::byte> bytes = Encoded({1, 2, 3});
  bytes[0] = std::byte{0};
  bytes[1] = std::byte{4};  // A block that lacks all of its 1,024 values.
  EXPECT_EQ(CountTopValues({bytes}), std::nullopt);
}

TEST(TopBlocksTest, ABlockWithAValueThatIsNotFiniteShowsIt) {
  for (const float wrong :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(kBlock + 1, 1.0f);
    values[700] = wrong;

    const std::vector<float> decoded = Decoded({Encoded(values)});

    EXPECT_FALSE(std::ranges::all_of(std::span(decoded).first(kBlock),
                                     [](float value) { return std::isfinite(value); }));
    EXPECT_EQ(decoded[kBlock], 1);
  }
}

TEST(TopBlocksTest, APlaceBeyondTheBlockIsNoNumber) {
  std::vector<std::byte> bytes = Encoded(std::vector<float>(100, 1.0f));
  bytes[2 + 15 * 2] = std::byte{100};

  EXPECT_TRUE(std::isnan(Decoded({bytes})[0]));
}

TEST(TopBlocksTest, TakesTheSameBytesForAnyBlock) {
  EXPECT_EQ(EncodedBytes(Encoding::kTopK, 1), 98u);
  EXPECT_EQ(EncodedBytes(Encoding::kTopK, 2 * kBlock), 196u);
  EXPECT_EQ(EncodedBytes(Encoding::kTopK, 2 * kBlock + 1), 294u);
}

}  // namespace
}  // namespace slipstream
