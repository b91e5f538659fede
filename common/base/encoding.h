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
enum class Encoding : uint8_t {
  kFp32 = 0,
  kBf16 = 1,
  kFp16 = 2,
  kInt8 = 3,
  kOneBit = 4,
  kTwoBit = 5,
  kTopK = 6
};

/// The facts about an encoding that code outside its codec needs. The codecs are in
/// common/wire/value_encoding.cc.
struct EncodingRow {
  Encoding kind;
  std::string_view name;  // The name in run.yaml.
  std::string_view doc;

  /// Bits that one value takes, 0 if blocks are equally long whatever their number of values. A
  /// block's values end with a whole byte.
  size_t value_bits;

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

  /// Set if the values of a block that are 0 take part in a mean that stands for other values.
  bool averages_zeros = false;

  /// Set if weights may travel in this encoding, too.
  bool carries_weights = true;
};

inline constexpr std::array kEncodingRows = {
    EncodingRow{.kind = Encoding::kFp32, .name = "fp32", .doc = "as they are", .value_bits = 32},
    EncodingRow{.kind = Encoding::kBf16,
                .name = "bf16",
                .doc = "in half the bytes, with fp32's range",
                .value_bits = 16,
                .overflow_min = 0x1.ffp127f},
    EncodingRow{.kind = Encoding::kFp16,
                .name = "fp16",
                .doc = "in half the bytes, finer than bf16 and up to 65504",
                .value_bits = 16,
                .overflow_min = 65520},
    EncodingRow{.kind = Encoding::kInt8,
                .name = "int8",
                .doc =
                    "in a quarter of the bytes, with a scale for 1,024 values; what rounding loses "
                    "of a gradient goes out with the next one",
                .value_bits = 8,
                .block_values = 1024,
                .block_bytes = 4,
                .overflow_min = 0x1p127f,
                .feeds_error_back = true},
    EncodingRow{
        .kind = Encoding::kOneBit,
        .name = "onebit",
        .doc = "as their signs, with the means of the positive and of the negative values of 256; "
               "what is lost goes out with the next gradient",
        .value_bits = 1,
        .block_values = 256,
        .block_bytes = 9,
        .feeds_error_back = true,
        .averages_zeros = true,
        .carries_weights = false},
    EncodingRow{.kind = Encoding::kTwoBit,
                .name = "twobit",
                .doc = "as positive, negative or 0, with the means of the values of 256 that are "
                       "beyond their mean magnitude; what is lost goes out with the next gradient",
                .value_bits = 2,
                .block_values = 256,
                .block_bytes = 9,
                .feeds_error_back = true,
                .carries_weights = false},
    EncodingRow{.kind = Encoding::kTopK,
                .name = "topk",
                .doc = "as the 16 largest of 1,024; the others go out with later gradients",
                .value_bits = 0,
                .block_values = 1024,
                .block_bytes = 98,
                .feeds_error_back = true,
                .carries_weights = false},
};

static_assert([] {
  for (size_t i = 0; i < kEncodingRows.size(); ++i) {
    if (static_cast<size_t>(kEncodingRows[i].kind) != i) return false;
  }
  return true;
}());

// Every chunk has room for whole blocks, and these are whole bytes.
static_assert(std::ranges::all_of(kEncodingRows, [](const EncodingRow& row) {
  return kChunkBytesMin % (row.block_values * sizeof(float)) == 0 &&
         row.block_values * row.value_bits % 8 == 0;
}));

constexpr const EncodingRow& RowOf(Encoding encoding) {
  return *std::ranges::find(kEncodingRows, encoding, &EncodingRow::kind);
}

/// Returns the bytes that `values` values take, of which the first begins a block.
constexpr size_t EncodedBytes(Encoding encoding, size_t values) {
  const EncodingRow& row = RowOf(encoding);
  const auto bytes_of = [&row](size_t count) {
    return count == 0 ? 0 : row.block_bytes + (count * row.value_bits + 7) / 8;
  };
  return values / row.block_values * bytes_of(row.block_values) +
         bytes_of(values % row.block_values);
}

/// Returns the largest number of values that take `bytes` bytes; nothing if no whole number does.
/// For encodings of less than a byte a value, several numbers do; their last block says which it
/// is.
constexpr std::optional<size_t> EncodedValues(Encoding encoding, size_t bytes) {
  const EncodingRow& row = RowOf(encoding);
  const size_t of_block = EncodedBytes(encoding, row.block_values);
  const size_t rest = bytes % of_block;
  if (rest > 0 && rest <= row.block_bytes) return std::nullopt;
  if (rest > 0 && row.value_bits == 0) return std::nullopt;
  const size_t in_rest = rest == 0 ? 0 : (rest - row.block_bytes) * 8 / row.value_bits;
  const size_t values = bytes / of_block * row.block_values + in_rest;
  return EncodedBytes(encoding, values) == bytes ? std::optional(values) : std::nullopt;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_ENCODING_H_
