#include "common/kernels/update.h"

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
#include "common/kernels/segments.h"

namespace slipstream {
namespace {

/// A payload whose bytes are cut into segments at random places, also inside values.
class CutPayload {
 public:
  CutPayload(const std::vector<float>& values, RandomStream& random) {
    const auto bytes = std::as_bytes(std::span(values));
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t length = std::min<size_t>(1 + random.Below(37), bytes.size() - begin);
      // An odd offset in its own buffer, so that every alignment comes up.
      std::vector<std::byte> piece(length + 1);
      std::memcpy(piece.data() + 1, bytes.data() + begin, length);
      pieces_.push_back(std::move(piece));
      begin += length;
    }
    for (const auto& piece : pieces_) segments_.push_back(std::span(piece).subspan(1));
  }
  const Segments& segments() const { return segments_; }

 private:
  std::vector<std::vector<std::byte>> pieces_;
  Segments segments_;
};

std::vector<float> RandomValues(size_t count, RandomStream& random) {
  std::vector<float> values(count);
  for (float& value : values) value = random.Uniform(-2.0f, 2.0f);
  return values;
}

TEST(UpdateKernels, FoldWhereverThePayloadIsCut) {
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

TEST(UpdateKernels, SgdEqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 1);
    const auto weights = RandomValues(1 + random.Below(300), random);
    const auto gradient = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CutPayload payload(gradient, random);
    const bool has_sum = random.Below(2) == 0;
    const CombinedGradient combined = {.sum = has_sum ? std::span(sum) : std::span<const float>(),
                                       .last = &payload.segments(),
                                       .last_weight = 0.75f,
                                       .inverse_divisor = 1.0f / 3.0f};
    std::vector<float> updated(weights.size());

    SgdUpdate(weights, updated, combined, 0.1f, 0.01f);

    for (size_t i = 0; i < weights.size(); ++i) {
      const float total = has_sum ? sum[i] + 0.75f * gradient[i] : 0.75f * gradient[i];
      const float g = total * (1.0f / 3.0f) + 0.01f * weights[i];
      ASSERT_EQ(updated[i], weights[i] - 0.1f * g) << "at " << i;
    }
  }
}

TEST(UpdateKernels, MomentumEqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 2);
    const auto weights = RandomValues(1 + random.Below(300), random);
    const auto velocity = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CombinedGradient combined = {.sum = sum, .inverse_divisor = 0.25f};
    std::vector<float> updated(weights.size());
    std::vector<float> velocity_out(weights.size());

    MomentumUpdate(weights, updated, velocity, velocity_out, combined, 0.1f, 0.9f, 0.0f);

    for (size_t i = 0; i < weights.size(); ++i) {
      const float v = 0.9f * velocity[i] + (sum[i] * 0.25f + 0.0f * weights[i]);
      ASSERT_EQ(velocity_out[i], v) << "at " << i;
      ASSERT_EQ(updated[i], weights[i] - 0.1f * v) << "at " << i;
    }
  }
}

/// algorithms.md, section 3: g = 1, α₀ = 1, σ = 0, 1, 2 in turn under per_gradient.
TEST(UpdateKernels, GiveThePublishedFiguresOfPerGradientScaling) {
  RandomStream random(0, 3);
  std::vector<float> theta = {0.0f};
  const CutPayload one({1.0f}, random);
  std::vector<float> path;

  for (const float scale : {1.0f, 1.0f, 0.5f}) {
    std::vector<float> next(1);
    SgdUpdate(theta, next, {.last = &one.segments(), .last_weight = scale}, 1.0f, 0.0f);
    theta = next;
    path.push_back(theta[0]);
  }

  EXPECT_EQ(path, (std::vector<float>{-1.0f, -2.0f, -2.5f}));
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

TEST(UpdateKernels, ASumInTheWeightsToBeWrittenAndStreamedStoresGiveTheSameBits) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 3);
    // Up to a few of the pieces in which the sum is moved out of the way.
    const auto weights = RandomValues(1 + random.Below(5000), random);
    const auto velocity = RandomValues(weights.size(), random);
    const auto gradient = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CutPayload payload(gradient, random);
    CombinedGradient combined = {.sum = sum, .last_weight = 0.5f, .inverse_divisor = 1.0f / 3.0f};
    if (random.Below(3) > 0) combined.last = &payload.segments();
    const bool has_momentum = random.Below(2) == 0;
    const auto update = [&](std::vector<float>& out, std::vector<float>& velocity_out,
                            Stores stores) {
      if (has_momentum) {
        MomentumUpdate(weights, out, velocity, velocity_out, combined, 0.1f, 0.9f, 0.01f, stores);
      } else {
        SgdUpdate(weights, out, combined, 0.1f, 0.01f, stores);
      }
    };
    std::vector<float> apart(weights.size());
    std::vector<float> velocity_apart(weights.size());
    update(apart, velocity_apart, Stores::kCached);

    std::vector<float> streamed(weights.size());
    std::vector<float> velocity_streamed(weights.size());
    update(streamed, velocity_streamed, Stores::kStreamed);
    ASSERT_EQ(streamed, apart);
    ASSERT_EQ(velocity_streamed, velocity_apart);

    for (const Stores stores : {Stores::kCached, Stores::kStreamed}) {
      std::vector<float> in_place = sum;
      std::vector<float> velocity_in_place(weights.size());
      combined.sum = in_place;
      update(in_place, velocity_in_place, stores);
      ASSERT_EQ(in_place, apart);
      ASSERT_EQ(velocity_in_place, velocity_apart);
    }
  }
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
