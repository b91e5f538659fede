#include "common/kernels/top_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/kernels/finite.h"
#include "common/kernels/whole_blocks.h"

namespace slipstream {
namespace {

constexpr const EncodingRow& kRow = RowOf(Encoding::kTopK);
constexpr size_t kBlock = kRow.block_values;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint16_t kNoPlace = 0xffff;

/// A block as it travels, but for its order of bytes, which copy_values.h requires to be ours.
struct TopBlock {
  uint16_t lacks = 0;
  std::array<uint16_t, kTopValues> places;
  std::array<float, kTopValues> values;
};
constexpr size_t kPlacesAt = sizeof(uint16_t);
constexpr size_t kValuesAt = kPlacesAt + sizeof(TopBlock::places);
static_assert(kRow.block_bytes == kValuesAt + sizeof(TopBlock::values) && kRow.value_bits == 0);
static_assert(kBlock < kNoPlace);

void Write(const TopBlock& block, std::byte* out) {
  std::memcpy(out, &block.lacks, kPlacesAt);
  std::memcpy(out + kPlacesAt, block.places.data(), sizeof(block.places));
  std::memcpy(out + kValuesAt, block.values.data(), sizeof(block.values));
}

TopBlock Read(const std::byte* bytes) {
  TopBlock block;
  std::memcpy(&block.lacks, bytes, kPlacesAt);
  std::memcpy(block.places.data(), bytes + kPlacesAt, sizeof(block.places));
  std::memcpy(block.values.data(), bytes + kValuesAt, sizeof(block.values));
  return block;
}

/// Returns the block of these values, which are at most kBlock.
TopBlock TopOf(std::span<const float> values) {
  // A magnitude's bits rise with it. Below them stands how far the place is from the end, so that
  // all keys differ and the first of equal values has the larger one.
  std::array<uint64_t, kBlock> keys;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto magnitude = std::bit_cast<uint32_t>(std::fabs(values[i]));
    keys[i] = uint64_t{magnitude} << 32 | (kBlock - i);
  }
  const size_t kept = std::min(kTopValues, values.size());
  const std::span<uint64_t> all = std::span(keys).first(values.size());
  if (kept < all.size()) {
    std::ranges::nth_element(all, all.begin() + static_cast<ptrdiff_t>(kept), std::greater<>());
  }
  TopBlock block = {
      .lacks = static_cast<uint16_t>(kBlock - values.size()), .places = {}, .values = {}};
  block.places.fill(kNoPlace);
  for (size_t i = 0; i < kept; ++i) {
    block.places[i] = static_cast<uint16_t>(kBlock - (all[i] & 0xffff'ffff));
  }
  std::ranges::sort(block.places);
  for (size_t i = 0; i < kept; ++i) block.values[i] = values[block.places[i]];
  return block;
}

}  // namespace

void EncodeTop(std::span<const float> values, std::span<std::byte> bytes) {
  PS_CHECK(bytes.size() == EncodedBytes(Encoding::kTopK, values.size()));
  std::byte* out = bytes.data();
  while (!values.empty()) {
    const std::span<const float> block = values.first(std::min(kBlock, values.size()));
    TopBlock top = TopOf(block);
    if (!AllFinite({std::as_bytes(block)})) top.values.front() = kNan;
    Write(top, out);
    out += kRow.block_bytes;
    values = values.subspan(block.size());
  }
}

void DecodeTop(const Segments& bytes, std::span<float> out) {
  PS_CHECK(TotalBytes(bytes) == EncodedBytes(Encoding::kTopK, out.size()));
  ForEachWholeBlock<Encoding::kTopK>(bytes, out, [](const std::byte* from, auto values) {
    const TopBlock block = Read(from);
    std::ranges::fill(values, 0.0f);
    const size_t kept = std::min(kTopValues, values.size());
    for (size_t i = 0; i < kept; ++i) {
      const bool is_within = block.places[i] < values.size();
      values[is_within ? block.places[i] : 0] = is_within ? block.values[i] : kNan;
    }
  });
}

std::optional<size_t> CountTopValues(const Segments& bytes) {
  const size_t total = TotalBytes(bytes);
  if (total % kRow.block_bytes != 0) return std::nullopt;
  if (total == 0) return 0;
  std::array<std::byte, sizeof(uint16_t)> lacks_bytes;
  size_t place = total - kRow.block_bytes;
  size_t read = 0;
  for (const ByteSegment& segment : bytes) {
    for (; read < lacks_bytes.size() && place < segment.size(); ++place) {
      lacks_bytes[read++] = segment[place];
    }
    place -= std::min(place, segment.size());
  }
  const auto lacks = std::bit_cast<uint16_t>(lacks_bytes);
  if (lacks >= kBlock) return std::nullopt;
  return total / kRow.block_bytes * kBlock - lacks;
}

}  // namespace slipstream
