#include "common/kernels/bit_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/philox.h"
#include "common/kernels/segments.h"
#include "tests/common/kernels/cut_payload.h"

namespace slipstream {
namespace {

constexpr size_t kBlock = 256;

struct BitCodec {
  Encoding encoding;
  void (*encode)(std::span<const float>, std::span<std::byte>);
  void (*decode)(const Segments&, std::span<float>);
};

/// The encodings of less than a byte a value.
class BitBlocksTest : public testing::TestWithParam<BitCodec> {
 protected:
  std::vector<std::byte> Encoded(const std::vector<float>& values) {
    std::vector<std::byte> bytes(EncodedBytes(GetParam().encoding, values.size()));
    GetParam().encode(values, bytes);
    return bytes;
  }

  std::vector<float> Decoded(const Segments& bytes) {
    const auto count = CountBitValues(GetParam().encoding, bytes);
    if (!count.has_value()) return {};
    std::vector<float> values(*count);
    GetParam().decode(bytes, values);
    return values;
  }
};

INSTANTIATE_TEST_SUITE_P(Both, BitBlocksTest,
                         testing::Values(BitCodec{Encoding::kOneBit, EncodeOneBit, DecodeOneBit},
                                         BitCodec{Encoding::kTwoBit, EncodeTwoBit, DecodeTwoBit}),
                         [](const auto& tested) {
                           return std::string(RowOf(tested.param.encoding).name);
                         });

/// Returns what a block of onebit arrives as: the mean of the values of the same sign.
std::vector<float> OneBit(std::span<const float> block) {
  double sums[2] = {};
  double counts[2] = {};
  for (const float value : block) {
    sums[std::signbit(value)] += value;
    counts[std::signbit(value)] += 1;
  }
  std::vector<float> arrived;
  for (const float value : block) {
    const bool is_negative = std::signbit(value);
    arrived.push_back(static_cast<float>(sums[is_negative] / counts[is_negative]));
  }
  return arrived;
}

/// Returns what a block of twobit arrives as: the mean of the values beyond the mean magnitude on
/// the same side, or 0.
std::vector<float> TwoBit(std::span<const float> block) {
  double sum = 0;
  for (const float value : block) sum += std::abs(value);
  const auto threshold = static_cast<float>(sum / static_cast<double>(block.size()));
  double sums[2] = {};
  double counts[2] = {};
  for (const float value : block) {
    if (std::abs(value) < threshold) continue;
    sums[std::signbit(value)] += value;
    counts[std::signbit(value)] += 1;
  }
  std::vector<float> arrived;
  for (const float value : block) {
    const bool is_negative = std::signbit(value);
    const bool is_beyond = std::abs(value) >= threshold;
    arrived.push_back(is_beyond ? static_cast<float>(sums[is_negative] / counts[is_negative]) : 0);
  }
  return arrived;
}

TEST_P(BitBlocksTest, EqualsThePlainLoop) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 24);
    const auto values = RandomValues(random.Below(5000), random);

    const std::vector<float> decoded = Decoded({Encoded(values)});

    ASSERT_EQ(decoded.size(), values.size());
    for (size_t begin = 0; begin < values.size(); begin += kBlock) {
      const auto block = std::span(values).subspan(begin, std::min(kBlock, values.size() - begin));
      const bool is_one = GetParam().encoding == Encoding::kOneBit;
      const std::vector<float> expected = is_one ? OneBit(block) : TwoBit(block);
      // The sums are made in different orders.
      for (size_t i = 0; i < block.size(); ++i) {
        ASSERT_NEAR(decoded[begin + i], expected[i], 1e-6) << "at " << begin + i;
      }
    }
  }
}

TEST_P(BitBlocksTest, DecodesWhereverItIsCut) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 25);
    const std::vector<std::byte> bytes = Encoded(RandomValues(random.Below(4000), random));
    Segments segments;
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t size = std::min<size_t>(random.Below(200), bytes.size() - begin);
      segments.push_back(std::span(bytes).subspan(begin, size));
      begin += size;
    }

    ASSERT_EQ(Decoded(segments), Decoded({bytes}));
  }
}

TEST_P(BitBlocksTest, TellsHowManyValuesItHolds) {
  for (const size_t count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257, 511, 512, 3001}) {
    const std::vector<std::byte> bytes = Encoded(std::vector<float>(count, 1.0f));
    EXPECT_EQ(CountBitValues(GetParam().encoding, {bytes}), count);
  }
}

TEST_P(BitBlocksTest, WhatIsNoWholeBlockHoldsNothing) {
  const Encoding encoding = GetParam().encoding;
  for (const size_t size : {1, 8, 9}) {
    EXPECT_EQ(CountBitValues(encoding, {std::vector<std::byte>(size)}), std::nullopt) << size;
  }
  std::vector<std::byte> bytes = Encoded({1, 2, 3});
  bytes[8] = std::byte{8};  // More positions than a byte has.
  EXPECT_EQ(CountBitValues(encoding, {bytes}), std::nullopt);
}

TEST_P(BitBlocksTest, BlocksOfZerosStayZero) {
  EXPECT_EQ(Decoded({Encoded(std::vector<float>(1500))}), std::vector<float>(1500));
}

TEST_P(BitBlocksTest, NothingOfABlockWithAValueThatIsNotFiniteIsFinite) {
  for (const float wrong :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(kBlock + 1, 1.0f);
    values[7] = wrong;

    const std::vector<float> decoded = Decoded({Encoded(values)});

    EXPECT_TRUE(std::none_of(decoded.begin(), decoded.begin() + kBlock,
                             [](float value) { return std::isfinite(value); }));
    EXPECT_EQ(decoded[kBlock], 1);
  }
}

TEST_P(BitBlocksTest, TheLargestNumbersStayFinite) {
  const std::vector<float> values(kBlock, std::numeric_limits<float>::max());
  EXPECT_EQ(Decoded({Encoded(values)}), values);
}

TEST(TwoBitTest, ACodeThatMeansNothingIsNoNumber) {
  std::vector<std::byte> bytes(EncodedBytes(Encoding::kTwoBit, 4));
  EncodeTwoBit(std::vector<float>{1, -1, 1, 1}, bytes);
  bytes.back() |= std::byte{3};
  std::vector<float> values(4);
  DecodeTwoBit({bytes}, values);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], -1);
}

TEST(BitBlocksSizeTest, TakesABitOrTwoForAValueAndNineBytesForABlock) {
  EXPECT_EQ(EncodedBytes(Encoding::kOneBit, kBlock), 9u + 32);
  EXPECT_EQ(EncodedBytes(Encoding::kOneBit, kBlock + 1), 9u + 32 + 9 + 1);
  EXPECT_EQ(EncodedBytes(Encoding::kTwoBit, kBlock + 5), 9u + 64 + 9 + 2);
}

}  // namespace
}  // namespace slipstream
