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

/// How values travel; what computes with them always has fp32. The numbers are those of
/// proto/shard.proto.
enum class Encoding : uint8_t { kFp32 = 0, kBf16 = 1, kFp16 = 2, kInt8 = 3 };

/// The facts of an encoding that others than its codec need; common/wire/value_encoding.cc has the
/// codecs.
struct EncodingRow {
  Encoding kind;
  std::string_view name;  // As in run.yaml.
  std::string_view doc;

  /// Bytes that one value takes.
  size_t value_bytes;

  /// Values that are encoded together, from the begin of a shard on, and what such a block takes
  /// beside its values, in bytes. Chunks begin where a block does; the last block of a shard may be
  /// shorter.
  size_t block_values = 1;
  size_t block_bytes = 0;

  /// The least magnitude that may become infinite.
  float overflow_min = std::numeric_limits<float>::infinity();

  /// The next gradient makes up for what the rounding of one loses (error feedback, Seide et al.,
  /// Interspeech 2014).
  bool feeds_error_back = false;

  /// Weights may travel in this encoding, too.
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

static_assert(std::ranges::all_of(kEncodingRows, [](const EncodingRow& row) {
  return kChunkBytesMin % (row.block_values * sizeof(float)) ==
         0;  // Any chunk has room for blocks.
}));

constexpr const EncodingRow& RowOf(Encoding encoding) {
  return *std::ranges::find(kEncodingRows, encoding, &EncodingRow::kind);
}

/// Bytes of so many values, of which the first begins a block.
constexpr size_t EncodedBytes(Encoding encoding, size_t values) {
  const EncodingRow& row = RowOf(encoding);
  const size_t blocks = (values + row.block_values - 1) / row.block_values;
  return values * row.value_bytes + blocks * row.block_bytes;
}

/// The values that take so many bytes; nothing if they are not whole.
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
