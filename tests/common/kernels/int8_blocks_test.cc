#include "common/kernels/int8_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/philox.h"
#include "common/kernels/segments.h"
#include "tests/common/kernels/cut_payload.h"

namespace slipstream {
namespace {

std::vector<std::byte> Encoded(const std::vector<float>& values) {
  std::vector<std::byte> bytes(EncodedBytes(Encoding::kInt8, values.size()));
  EncodeInt8(values, bytes);
  return bytes;
}

std::vector<float> Decoded(const std::vector<std::byte>& bytes) {
  std::vector<float> values(*EncodedValues(Encoding::kInt8, bytes.size()));
  DecodeInt8({bytes}, values);
  return values;
}

TEST(Int8BlocksTest, EqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 20);
    const auto values = RandomValues(random.Below(5000), random);

    const std::vector<float> decoded = Decoded(Encoded(values));

    ASSERT_EQ(decoded.size(), values.size());
    for (size_t begin = 0; begin < values.size(); begin += 1024) {
      const size_t end = std::min(begin + 1024, values.size());
      float largest = 0;
      for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
      const float scale = largest / 127;
      for (size_t i = begin; i < end; ++i) {
        ASSERT_EQ(decoded[i], std::nearbyint(values[i] / scale) * scale) << "at " << i;
      }
    }
  }
}

TEST(Int8BlocksTest, DecodesWhereverItIsCut) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 21);
    const std::vector<std::byte> bytes = Encoded(RandomValues(random.Below(4000), random));
    std::vector<std::vector<std::byte>> pieces;
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t size = std::min<size_t>(random.Below(1500), bytes.size() - begin);
      pieces.emplace_back(bytes.begin() + static_cast<ptrdiff_t>(begin),
                          bytes.begin() + static_cast<ptrdiff_t>(begin + size));
      begin += size;
    }
    Segments segments;
    for (const auto& piece : pieces) segments.emplace_back(piece);
    std::vector<float> values(*EncodedValues(Encoding::kInt8, bytes.size()));

    DecodeInt8(segments, values);

    ASSERT_EQ(values, Decoded(bytes));
  }
}

TEST(Int8BlocksTest, RoundsTiesToEvenAndKeepsTheLargest) {
  // The scale of this block is 2.
  const std::vector<float> values = {254, -254, 1, 3, 5, -1, -3, 0.9f};

  EXPECT_EQ(Decoded(Encoded(values)), (std::vector<float>{254, -254, 0, 4, 4, -0.0f, -4, 0}));
}

TEST(Int8BlocksTest, TinyBlocksAreZero) {
  EXPECT_EQ(Decoded(Encoded({1e-31f, -1e-40f, 0})), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(Decoded(Encoded({1e-30f})), (std::vector<float>{1e-30f / 127 * 127}));
}

TEST(Int8BlocksTest, NothingOfABlockWithAValueThatIsNotFiniteIsFinite) {
  for (const float wrong :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(1025, 1.0f);
    values[7] = wrong;

    const std::vector<float> decoded = Decoded(Encoded(values));

    EXPECT_TRUE(std::none_of(decoded.begin(), decoded.begin() + 1024,
                             [](float value) { return std::isfinite(value); }));
    EXPECT_EQ(decoded[1024], 1.0f / 127 * 127);
  }
}

TEST(Int8BlocksTest, OnlyWholeValuesHaveACount) {
  EXPECT_EQ(EncodedBytes(Encoding::kInt8, 1024), 1028u);
  EXPECT_EQ(EncodedValues(Encoding::kInt8, 1028), 1024u);
  EXPECT_EQ(EncodedValues(Encoding::kInt8, 1028 + 5), 1025u);
  EXPECT_EQ(EncodedValues(Encoding::kInt8, 0), 0u);
  EXPECT_EQ(EncodedValues(Encoding::kInt8, 3), std::nullopt);
  EXPECT_EQ(EncodedValues(Encoding::kInt8, 4), std::nullopt);
  EXPECT_EQ(EncodedValues(Encoding::kInt8, 1028 + 4), std::nullopt);
}

}  // namespace
}  // namespace slipstream
