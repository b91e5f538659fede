#ifndef SLIPSTREAM_COMMON_BASE_ENCODING_H_
#define SLIPSTREAM_COMMON_BASE_ENCODING_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "common/base/limits.h"

namespace slipstream {

/// The format in which values travel. Computation always uses fp32. The numbers are those of
/// proto/shard.proto.
enum class Encoding : uint8_t { kFp32 = 0, kBf16 = 1, kFp16 = 2, kInt8 = 3 };

/// The facts about an encoding that code outside its codec needs. The codecs are in
/// common/wire/value_encoding.cc.
struct EncodingRow {
  Encoding kind;
  std::string_view name;  // The name in run.yaml.
  std::string_view doc;

  /// Bytes that one value takes.
  size_t value_bytes;

  /// The number of values that are encoded together as a block, counted from the begin of a shard,
  /// and the bytes that a block takes beside its values. Chunks begin where a block begins; the
  /// last block of a shard may be shorter.
  size_t block_values = 1;
  size_t block_bytes = 0;

  /// The smallest magnitude that encoding may turn into infinity.
  float overflow_min = std::numeric_limits<float>::infinity();

  /// Set if the sender adds what rounding lost in one gradient to the next one (error feedback,
  /// Seide et al., Interspeech 2014).
  bool feeds_error_back = false;

  /// Set if weights may travel in this encoding, too.
  bool carries_weights = true;
};

inline constexpr std::array kEncodingRows = {
    EncodingRow{.kind = Encoding::kFp32, .name = "fp32", .doc = "as they are", .value_bytes = 4},
    EncodingRow{.kind = Encoding::kBf16,
                .name = "bf16",
                .doc = "in half the bytes, with fp32's range",
                .value_bytes = 2,
                .overflow_min = 0x1.ffp127f},
    EncodingRow{.kind = Encoding::kFp16,
                .name = "fp16",
                .doc = "in half the bytes, finer than bf16 and up to 65504",
                .value_bytes = 2,
                .overflow_min = 65520},
    EncodingRow{.kind = Encoding::kInt8,
                .name = "int8",
                .doc =
                    "in a quarter of the bytes, with a scale for 1,024 values; what rounding loses "
                    "goes out with the next gradient",
                .value_bytes = 1,
                .block_values = 1024,
                .block_bytes = 4,
                .overflow_min = 0x1p127f,
                .feeds_error_back = true,
                .carries_weights = false},
};

static_assert([] {
  for (size_t i = 0; i < kEncodingRows.size(); ++i) {
    if (static_cast<size_t>(kEncodingRows[i].kind) != i) return false;
  }
  return true;
}());

// Every chunk has room for whole blocks.
static_assert(std::ranges::all_of(kEncodingRows, [](const EncodingRow& row) {
  return kChunkBytesMin % (row.block_values * sizeof(float)) == 0;
}));

constexpr const EncodingRow& RowOf(Encoding encoding) {
  return *std::ranges::find(kEncodingRows, encoding, &EncodingRow::kind);
}

/// Returns the bytes that `values` values take, of which the first begins a block.
constexpr size_t EncodedBytes(Encoding encoding, size_t values) {
  const EncodingRow& row = RowOf(encoding);
  const size_t blocks = (values + row.block_values - 1) / row.block_values;
  return values * row.value_bytes + blocks * row.block_bytes;
}

/// Returns how many values take `bytes` bytes; nothing if no whole number does.
constexpr std::optional<size_t> EncodedValues(Encoding encoding, size_t bytes) {
  const EncodingRow& row = RowOf(encoding);
  const size_t of_block = row.block_values * row.value_bytes + row.block_bytes;
  const size_t blocks = (bytes + of_block - 1) / of_block;
  if (bytes < blocks * row.block_bytes) return std::nullopt;
  const size_t values = (bytes - blocks * row.block_bytes) / row.value_bytes;
  return EncodedBytes(encoding, values) == bytes ? std::optional(values) : std::nullopt;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_ENCODING_H_
