#include "common/kernels/bit_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/kernels/finite.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/whole_blocks.h"

namespace slipstream {
namespace {

constexpr size_t kLevelsBytes = 2 * sizeof(float);
constexpr size_t kHeadBytes = kLevelsBytes + 1;
static_assert(RowOf(Encoding::kOneBit).block_bytes == kHeadBytes);
static_assert(RowOf(Encoding::kTwoBit).block_bytes == kHeadBytes);

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Sums of a block's values: value i goes to sum i mod kSums, so that sums can be made side by side
/// and are still in a fixed order.
constexpr size_t kSums = 8;

/// The values of a block that are at least a threshold, and those that are at most its negative;
/// with a threshold of 0, those that are not negative, and the others.
struct Sides {
  double above = 0;  // Their sums.
  double below = 0;
  uint32_t count_above = 0;
  uint32_t count_below = 0;
};

SLIPSTREAM_CPU_DISPATCH
Sides SidesOf(const float* values, size_t count, float threshold) {
  double above[kSums] = {};
  double below[kSums] = {};
  Sides all;
  const auto add = [&](size_t sum, float value) {
    const bool is_above = value >= threshold;
    const bool is_below = !is_above && value <= -threshold;
    above[sum] += is_above ? static_cast<double>(value) : 0.0;
    below[sum] += is_below ? static_cast<double>(value) : 0.0;
    all.count_above += is_above;
    all.count_below += is_below;
  };
  size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (size_t sum = 0; sum < kSums; ++sum) add(sum, values[i + sum]);
  }
  for (; i < count; ++i) add(i % kSums, values[i]);
  for (size_t sum = 0; sum < kSums; ++sum) {
    all.above += above[sum];
    all.below += below[sum];
  }
  return all;
}

float Mean(double sum, size_t count) {
  return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
}

using Levels = std::array<float, 2>;

Levels MeansOf(const Sides& sides) {
  return {Mean(sides.above, sides.count_above), Mean(sides.below, sides.count_below)};
}

/// How a block's values are told apart, and what stands for them.
struct Scale {
  float threshold = 0;
  Levels levels;
};

Scale OneBitScale(std::span<const float> block) {
  return {.threshold = 0, .levels = MeansOf(SidesOf(block.data(), block.size(), 0))};
}

Scale TwoBitScale(std::span<const float> block) {
  const Sides signs = SidesOf(block.data(), block.size(), 0);
  const float threshold = Mean(signs.above - signs.below, block.size());
  return {.threshold = threshold,
          .levels = MeansOf(SidesOf(block.data(), block.size(), threshold))};
}

uint32_t OneBitCode(float value, float) { return value >= 0 ? 1 : 0; }

uint32_t TwoBitCode(float value, float threshold) {
  return value >= threshold ? 1u : value <= -threshold ? 2u : 0u;
}

/// Packs the codes of `count` values, kBits each.
template <uint32_t kBits, auto kCodeOf>
SLIPSTREAM_INLINE void Pack(const float* values, size_t count, float threshold, std::byte* out) {
  constexpr size_t kPerByte = 8 / kBits;
  const auto byte_of = [&](const float* of, size_t codes) {
    uint32_t byte = 0;
    for (size_t i = 0; i < codes; ++i) byte |= kCodeOf(of[i], threshold) << (kBits * i);
    return static_cast<std::byte>(byte);
  };
  for (; count >= kPerByte; count -= kPerByte, values += kPerByte) {
    *out++ = byte_of(values, kPerByte);
  }
  if (count > 0) *out = byte_of(values, count);
}

/// Unpacks `count` values; `worth` has the number that each code stands for.
template <uint32_t kBits>
SLIPSTREAM_INLINE void Unpack(const std::byte* bytes, const std::array<float, 1 << kBits>& worth,
                              std::span<float> out) {
  constexpr size_t kPerByte = 8 / kBits;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<uint32_t>(bytes[i / kPerByte]);
    out[i] = worth[(byte >> (kBits * (i % kPerByte))) & ((1u << kBits) - 1)];
  }
}

template <Encoding kEncoding, auto kScaleOf, auto kCodeOf>
void EncodeBlocks(std::span<const float> values, std::span<std::byte> bytes) {
  constexpr const EncodingRow& kRow = RowOf(kEncoding);
  constexpr size_t kPerByte = 8 / kRow.value_bits;
  PS_CHECK(bytes.size() == EncodedBytes(kEncoding, values.size()));
  std::byte* out = bytes.data();
  while (!values.empty()) {
    const std::span<const float> block = values.first(std::min(kRow.block_values, values.size()));
    Scale scale = kScaleOf(block);
    if (!AllFinite({std::as_bytes(block)})) scale.levels = {kNan, kNan};
    std::memcpy(out, scale.levels.data(), kLevelsBytes);
    out[kLevelsBytes] = static_cast<std::byte>((kPerByte - block.size() % kPerByte) % kPerByte);
    Pack<kRow.value_bits, kCodeOf>(block.data(), block.size(), scale.threshold, out + kHeadBytes);
    out += EncodedBytes(kEncoding, block.size());
    values = values.subspan(block.size());
  }
}

/// Returns the levels of a block; no value of a block may decode to a number if one of them is
/// none.
Levels ReadLevels(const std::byte* block) {
  Levels levels;
  std::memcpy(levels.data(), block, kLevelsBytes);
  if (!std::isfinite(levels[0]) || !std::isfinite(levels[1])) levels = {kNan, kNan};
  return levels;
}

template <Encoding kEncoding>
void CheckSize(const Segments& bytes, std::span<float> out) {
  PS_CHECK(TotalBytes(bytes) == EncodedBytes(kEncoding, out.size()));
}

}  // namespace

void EncodeOneBit(std::span<const float> values, std::span<std::byte> bytes) {
  EncodeBlocks<Encoding::kOneBit, OneBitScale, OneBitCode>(values, bytes);
}

void EncodeTwoBit(std::span<const float> values, std::span<std::byte> bytes) {
  EncodeBlocks<Encoding::kTwoBit, TwoBitScale, TwoBitCode>(values, bytes);
}

void DecodeOneBit(const Segments& bytes, std::span<float> out) {
  CheckSize<Encoding::kOneBit>(bytes, out);
  ForEachWholeBlock<Encoding::kOneBit>(bytes, out, [](const std::byte* block, auto values) {
    const Levels levels = ReadLevels(block);
    Unpack<1>(block + kHeadBytes, {levels[1], levels[0]}, values);
  });
}

void DecodeTwoBit(const Segments& bytes, std::span<float> out) {
  CheckSize<Encoding::kTwoBit>(bytes, out);
  ForEachWholeBlock<Encoding::kTwoBit>(bytes, out, [](const std::byte* block, auto values) {
    const Levels levels = ReadLevels(block);
    const float zero = std::isnan(levels[0]) ? kNan : 0.0f;
    Unpack<2>(block + kHeadBytes, {zero, levels[0], levels[1], kNan}, values);
  });
}

std::optional<size_t> CountBitValues(Encoding encoding, const Segments& bytes) {
  const std::optional<size_t> most = EncodedValues(encoding, TotalBytes(bytes));
  if (!most.has_value() || *most == 0) return most;
  const size_t last_block =
      (*most - 1) / RowOf(encoding).block_values * RowOf(encoding).block_values;
  size_t place = EncodedBytes(encoding, last_block) + kLevelsBytes;
  for (const ByteSegment& segment : bytes) {
    if (place < segment.size()) {
      const auto unused = static_cast<size_t>(segment[place]);
      const bool is_whole = unused < 8 / RowOf(encoding).value_bits;
      return is_whole ? std::optional(*most - unused) : std::nullopt;
    }
    place -= segment.size();
  }
  return std::nullopt;
}

}  // namespace slipstream
