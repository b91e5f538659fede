#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "common/base/philox.h"
#include "common/kernels/finite.h"
#include "common/kernels/fold.h"
#include "common/kernels/segments.h"
#include "common/kernels/squares.h"
#include "common/kernels/streamed_stores.h"
#include "tests/common/kernels/cut_payload.h"

namespace slipstream {
namespace {

TEST(FoldTest, AddsWhereverThePayloadIsCut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    const auto first = RandomValues(random.Below(300), random);
    const auto second = RandomValues(first.size(), random);
    std::vector<float> sum(first.size(), 99.0f);

    FoldGradient(sum, CutPayload(first, random).segments(), 0.5f, true);
    FoldGradient(sum, CutPayload(second, random).segments(), 3.0f, false);

    for (size_t i = 0; i < sum.size(); ++i) {
      const float expected = 0.5f * first[i] + 3.0f * second[i];
      ASSERT_EQ(sum[i], expected) << "at " << i;
    }
  }
}

TEST(SumOfSquaresTest, AddsBlocksInOrderWhereverTheValuesLie) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 14);
    const auto values = RandomValues(random.Below(5000), random);
    double expected = 0;
    for (size_t begin = 0; begin < values.size(); begin += 1024) {
      double lanes[16] = {};
      for (size_t i = begin; i < std::min(begin + 1024, values.size()); ++i) {
        lanes[i % 16] += double{values[i]} * values[i];
      }
      double block = 0;
      for (const double lane : lanes) block += lane;
      expected += block;
    }
    std::vector<float> shifted(1 + random.Below(16));
    const size_t shift = shifted.size();
    shifted.insert(shifted.end(), values.begin(), values.end());

    ASSERT_EQ(SumOfSquares(values), expected);
    ASSERT_EQ(SumOfSquares(std::span(shifted).subspan(shift)), expected);
  }
}

TEST(SumOfSquaresTest, HoldsTheSquaresOfAllNumbers) {
  EXPECT_EQ(SumOfSquares({}), 0.0);
  EXPECT_EQ(SumOfSquares(std::vector<float>{3, -4}), 25.0);
  EXPECT_NEAR(SumOfSquares(std::vector<float>(2000, 3e38f)) / (2000 * 9e76), 1, 1e-6);
}

TEST(AllBelowTest, TakesTheLimitAndNanForTooMuch) {
  RandomStream random(8, 4);
  for (const float wrong : {5.0f, -5.0f, 6.0f, std::numeric_limits<float>::quiet_NaN()}) {
    auto values = RandomValues(100, random);
    values[60] = std::nextafter(-5.0f, 0.0f);
    ASSERT_TRUE(AllBelow(CutPayload(values, random).segments(), 5));
    values[70] = wrong;
    ASSERT_FALSE(AllBelow(CutPayload(values, random).segments(), 5)) << wrong;
  }
}

TEST(AllFiniteTest, FindsEveryKindOfNonfiniteValueAnywhere) {
  const float bad_values[] = {
      std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
      std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()};
  RandomStream random(7, 4);
  for (size_t count : {size_t{1}, size_t{15}, size_t{16}, size_t{257}}) {
    for (size_t place = 0; place < count; ++place) {
      auto values = RandomValues(count, random);
      ASSERT_TRUE(AllFinite(CutPayload(values, random).segments()));
      values[place] = bad_values[place % 4];
      ASSERT_FALSE(AllFinite(CutPayload(values, random).segments())) << place << " of " << count;
    }
  }
}

TEST(AllFiniteTest, TakesTheLargestFiniteAndTheSmallestSubnormal) {
  RandomStream random(7, 5);
  const CutPayload payload({std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
                            std::numeric_limits<float>::denorm_min(), -0.0f},
                           random);

  EXPECT_TRUE(AllFinite(payload.segments()));
}

TEST(SegmentsTest, BlocksHoldEveryByteOnceWhereverSegmentsAreCut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 6);
    const auto values = RandomValues(random.Below(300), random);
    const CutPayload payload(values, random);
    const size_t block_bytes = 4 * (1 + random.Below(50));
    std::vector<std::byte> gathered;
    ForEachBlock(payload.segments(), block_bytes, [&](size_t begin, const Segments& block) {
      EXPECT_EQ(begin, gathered.size());
      for (const ByteSegment& segment : block) {
        gathered.insert(gathered.end(), segment.begin(), segment.end());
      }
      EXPECT_LE(TotalBytes(block), block_bytes);
      EXPECT_TRUE(TotalBytes(block) == block_bytes || gathered.size() == values.size() * 4);
    });
    const auto bytes = std::as_bytes(std::span(values));
    EXPECT_TRUE(std::ranges::equal(gathered, bytes));
  }
}

TEST(StreamedStoresTest, CopyAnyCountFromAndToAnyPlace) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 7);
    const auto values = RandomValues(random.Below(200), random);
    std::vector<std::byte> from(values.size() * sizeof(float) + 16);
    const size_t shift = random.Below(16);
    std::memcpy(from.data() + shift, values.data(), values.size() * sizeof(float));
    std::vector<float> to(values.size() + 64, 9.0f);
    const size_t begin = random.Below(64);

    StreamValues(from.data() + shift, to.data() + begin, values.size());
    FinishStreaming();

    for (size_t i = 0; i < to.size(); ++i) {
      const bool is_written = i >= begin && i < begin + values.size();
      ASSERT_EQ(to[i], is_written ? values[i - begin] : 9.0f) << "at " << i;
    }
  }
}

}  // namespace
}  // namespace slipstream
