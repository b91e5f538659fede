#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/philox.h"
#include "common/kernels/half_decode.h"
#include "common/kernels/half_encode.h"
#include "common/kernels/segments.h"

namespace slipstream {
namespace {

constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint32_t kSign = 0x80000000;

/// The definition of a format, and the functions that are checked against it.
struct Format {
  std::string name;
  int precision_bits;  // The bits of the fraction.
  int exponent_min;    // The exponent of the smallest normal number.
  uint16_t infinity;   // The bits of infinity.
  std::vector<void (*)(std::span<const float>, std::span<uint16_t>)> encoders;
  std::vector<void (*)(const Segments&, std::span<float>)> decoders;
};

const Format kBf16 = {"bf16", 7, -126, 0x7f80, {EncodeBf16}, {DecodeBf16}};
const Format kFp16 = {
    "fp16", 10, -14, 0x7c00, {EncodeFp16, EncodeFp16Plain}, {DecodeFp16, DecodeFp16Plain}};

std::vector<uint16_t> AllHalves() {
  std::vector<uint16_t> halves(65'536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  return halves;
}

class HalfFormatsTest : public testing::TestWithParam<Format> {
 protected:
  const Format& format() const { return GetParam(); }
  bool IsNan(uint16_t half) const { return (half & 0x7fff) > format().infinity; }
  uint16_t QuietBit() const { return static_cast<uint16_t>(1 << (format().precision_bits - 1)); }

  /// Returns the value of a finite `half`.
  double WorthOf(uint16_t half) const {
    const int magnitude = half & 0x7fff;
    const int exponent = magnitude >> format().precision_bits;
    const int fraction = magnitude & ((1 << format().precision_bits) - 1);
    const int significand = exponent == 0 ? fraction : fraction + (1 << format().precision_bits);
    const int scale = std::max(exponent, 1) - 1 + format().exponent_min - format().precision_bits;
    return std::copysign(std::ldexp(significand, scale), half >= 0x8000 ? -1 : 1);
  }

  /// Returns the format's number nearest to `value`. Infinity counts as the next power of two.
  uint16_t ReferenceOf(float value) const {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    if (std::isnan(value)) {
      const uint32_t payload = (bits & 0x7fffff) >> (23 - format().precision_bits);
      return static_cast<uint16_t>(sign | format().infinity | QuietBit() | payload);
    }
    const double magnitude = std::fabs(static_cast<double>(value));
    uint16_t below = 0;
    for (uint16_t above = format().infinity; above - below > 1;) {
      const auto middle = static_cast<uint16_t>((below + above) / 2);
      (WorthOf(middle) <= magnitude ? below : above) = middle;
    }
    const double down = magnitude - WorthOf(below);
    const double up = WorthOf(static_cast<uint16_t>(below + 1)) - magnitude;
    const bool rounds_up = up < down || (up == down && below % 2 == 1);
    return static_cast<uint16_t>(sign | (rounds_up ? below + 1 : below));
  }

  /// Decodes with every decoder. All must give the same bits.
  std::vector<float> Decoded(const std::vector<uint16_t>& halves) const {
    return DecodedFrom({std::as_bytes(std::span(halves))}, halves.size());
  }

  std::vector<float> DecodedFrom(const Segments& segments, size_t count) const {
    std::vector<float> first(count);
    format().decoders.front()(segments, first);
    for (const auto decode : format().decoders) {
      std::vector<float> values(count);
      decode(segments, values);
      EXPECT_EQ(std::memcmp(values.data(), first.data(), count * sizeof(float)), 0);
    }
    return first;
  }

  /// Checks every encoder against the reference.
  void ExpectEncodedRight(const std::vector<float>& values) const {
    std::vector<uint16_t> expected(values.size());
    for (size_t i = 0; i < values.size(); ++i) expected[i] = ReferenceOf(values[i]);
    for (const auto encode : format().encoders) {
      std::vector<uint16_t> halves(values.size());
      encode(values, halves);
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(halves[i], expected[i])
            << std::hex << "of bits " << std::bit_cast<uint32_t>(values[i]);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Both, HalfFormatsTest, testing::Values(kBf16, kFp16),
                         [](const auto& format) { return format.param.name; });

TEST_P(HalfFormatsTest, EveryNumberDecodesToWhatItIsWorth) {
  const std::vector<uint16_t> halves = AllHalves();

  const std::vector<float> values = Decoded(halves);

  for (const uint16_t half : halves) {
    const float value = values[half];
    ASSERT_EQ(std::signbit(value), half >= 0x8000) << half;
    if (IsNan(half)) {
      ASSERT_TRUE(std::isnan(value)) << half;
    } else if ((half & 0x7fff) == format().infinity) {
      ASSERT_TRUE(std::isinf(value)) << half;
    } else {
      ASSERT_EQ(static_cast<double>(value), WorthOf(half)) << half;
    }
  }
}

TEST_P(HalfFormatsTest, EveryNumberComesBackAsItself) {
  const std::vector<uint16_t> halves = AllHalves();
  const std::vector<float> values = Decoded(halves);

  for (const auto encode : format().encoders) {
    std::vector<uint16_t> encoded(halves.size());
    encode(values, encoded);

    for (const uint16_t half : halves) {
      // The only change is that a signalling NaN becomes a quiet one.
      ASSERT_EQ(encoded[half], IsNan(half) ? half | QuietBit() : half);
    }
  }
}

TEST_P(HalfFormatsTest, RoundsTiesToEvenAndTheirNeighboursToTheNearest) {
  std::vector<float> values;
  for (uint16_t half = 0; half < format().infinity; ++half) {
    const auto next = static_cast<uint16_t>(half + 1);
    const auto tie = static_cast<float>((WorthOf(half) + WorthOf(next)) / 2);
    if (std::isinf(tie)) continue;
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, infinity)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }

  ExpectEncodedRight(values);
}

TEST_P(HalfFormatsTest, RoundsAnyBitsAsTheReferenceDoes) {
  RandomStream random(5, 0);
  std::vector<float> values(100'000);
  for (float& value : values) value = std::bit_cast<float>(random.NextWord());

  ExpectEncodedRight(values);
}

TEST_P(HalfFormatsTest, RoundsOrdinaryNumbersAsTheReferenceDoes) {
  RandomStream random(6, 0);
  std::vector<float> values(100'000);
  for (float& value : values) {
    value = std::ldexp(random.Uniform(-1, 1), 20 - static_cast<int>(random.Below(50)));
  }

  ExpectEncodedRight(values);
}

TEST_P(HalfFormatsTest, NoNanBecomesInfinite) {
  std::vector<float> values;
  for (int bit = 0; bit < 23; ++bit) {  // Includes payloads that do not fit into 16 bits.
    for (const uint32_t sign : {0u, kSign}) {
      values.push_back(std::bit_cast<float>(sign | kInfinity | 1u << bit));
      values.push_back(std::bit_cast<float>(sign | kInfinity | 0x7fffffu >> bit));
    }
  }

  ExpectEncodedRight(values);

  for (const float value : values) ASSERT_TRUE(IsNan(ReferenceOf(value)));
}

TEST_P(HalfFormatsTest, EncodesAnyNumberOfValues) {
  RandomStream random(7, 0);
  for (size_t count = 0; count < 70; ++count) {
    std::vector<float> values(count);
    for (float& value : values) value = random.Uniform(-2, 2);
    for (const auto encode : format().encoders) {
      std::vector<uint16_t> halves(count + 1, 0xabcd);

      encode(values, std::span(halves).first(count));

      for (size_t i = 0; i < count; ++i) ASSERT_EQ(halves[i], ReferenceOf(values[i]));
      ASSERT_EQ(halves[count], 0xabcd);  // Nothing is written behind the values.
    }
  }
}

TEST_P(HalfFormatsTest, DecodesWhereverThePayloadIsCut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 1);
    std::vector<uint16_t> halves(random.Below(300));
    for (uint16_t& half : halves) half = static_cast<uint16_t>(random.NextWord());
    std::vector<std::vector<std::byte>> pieces;
    for (ByteSegment rest = std::as_bytes(std::span(halves)); !rest.empty();) {
      const size_t size = std::min<size_t>(rest.size(), random.Below(38));  // May be empty.
      pieces.emplace_back(size + 1);  // A piece begins at an odd address.
      std::ranges::copy(rest.first(size), pieces.back().begin() + 1);
      rest = rest.subspan(size);
    }
    Segments segments;
    for (const auto& piece : pieces) segments.push_back(std::span(piece).subspan(1));

    const std::vector<float> values = DecodedFrom(segments, halves.size());

    const std::vector<float> expected = Decoded(halves);
    ASSERT_EQ(std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)), 0);
  }
}

TEST_P(HalfFormatsTest, OverflowBeginsWhereItIsSaidTo) {
  const Encoding encoding = format().name == "bf16" ? Encoding::kBf16 : Encoding::kFp16;
  const float first = RowOf(encoding).overflow_min;

  EXPECT_EQ(ReferenceOf(first), format().infinity);
  EXPECT_EQ(ReferenceOf(std::nextafter(first, 0.0f)), format().infinity - 1);
}

TEST(Fp16Test, BeyondItsRangeIsInfinite) {
  const std::vector<float> values = {65504, 65519.996f, 65520, -65520, 1e6f, -3e38f};
  std::vector<uint16_t> halves(values.size());

  EncodeFp16(values, halves);

  EXPECT_EQ(halves, (std::vector<uint16_t>{0x7bff, 0x7bff, 0x7c00, 0xfc00, 0x7c00, 0xfc00}));
}

TEST(Fp16Test, SmallNumbersLosePrecisionBeforeTheyVanish) {
  const std::vector<float> values = {0x1p-14f, 0x1p-24f,        0x1.8p-24f,
                                     0x1p-25f, 0x1.000002p-25f, -0x1p-26f};
  std::vector<uint16_t> halves(values.size());

  EncodeFp16(values, halves);

  EXPECT_EQ(halves, (std::vector<uint16_t>{0x0400, 0x0001, 0x0002, 0x0000, 0x0001, 0x8000}));
}

}  // namespace
}  // namespace slipstream
