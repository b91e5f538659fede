// The codecs of all encodings but fp32, and their registry.

#include "common/wire/value_encoding.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/kernels/bit_blocks.h"
#include "common/kernels/half_decode.h"
#include "common/kernels/half_encode.h"
#include "common/kernels/int8_blocks.h"
#include "common/kernels/top_blocks.h"

namespace slipstream {
namespace {

std::span<uint16_t> Halves(std::span<std::byte> bytes) {
  return {reinterpret_cast<uint16_t*>(bytes.data()), bytes.size() / sizeof(uint16_t)};
}

struct Codec {
  Encoding encoding;
  void (*encode)(std::span<const float> values, std::span<std::byte> bytes);
  void (*decode)(const Segments& bytes, std::span<float> values);

  /// Returns how many values the bytes hold, as EncodedValues does; null where their number alone
  /// says it.
  std::optional<size_t> (*count)(const Segments& bytes) = nullptr;
};

constexpr Codec kCodecs[] = {
    {Encoding::kBf16,
     [](std::span<const float> values, std::span<std::byte> bytes) {
       EncodeBf16(values, Halves(bytes));
     },
     DecodeBf16},
    {Encoding::kFp16,
     [](std::span<const float> values, std::span<std::byte> bytes) {
       EncodeFp16(values, Halves(bytes));
     },
     DecodeFp16},
    {Encoding::kInt8, EncodeInt8, DecodeInt8},
    {Encoding::kOneBit, EncodeOneBit, DecodeOneBit,
     [](const Segments& bytes) { return CountBitValues(Encoding::kOneBit, bytes); }},
    {Encoding::kTwoBit, EncodeTwoBit, DecodeTwoBit,
     [](const Segments& bytes) { return CountBitValues(Encoding::kTwoBit, bytes); }},
    {Encoding::kTopK, EncodeTop, DecodeTop, CountTopValues},
};

static_assert(std::ranges::all_of(kEncodingRows, [](const EncodingRow& row) {
  const bool needs_none = row.kind == Encoding::kFp32;
  return std::ranges::count(kCodecs, row.kind, &Codec::encoding) == (needs_none ? 0 : 1);
}));

const Codec& CodecOf(Encoding encoding) {
  return *std::ranges::find(kCodecs, encoding, &Codec::encoding);
}

std::optional<size_t> CountOf(Encoding encoding, const Segments& segments) {
  if (encoding != Encoding::kFp32 && CodecOf(encoding).count != nullptr) {
    return CodecOf(encoding).count(segments);
  }
  return EncodedValues(encoding, TotalBytes(segments));
}

}  // namespace

void Encode(Encoding encoding, std::span<const float> values, std::span<std::byte> bytes) {
  PS_CHECK(bytes.size() == EncodedBytes(encoding, values.size()));
  CodecOf(encoding).encode(values, bytes);
}

void Decode(Encoding encoding, const Segments& bytes, std::span<float> values) {
  PS_CHECK(TotalBytes(bytes) == EncodedBytes(encoding, values.size()));
  CodecOf(encoding).decode(bytes, values);
}

LentBytes EncodeValues(LentValues lent, Encoding encoding) {
  if (encoding == Encoding::kFp32) return {std::as_bytes(lent.values), std::move(lent.owner)};
  const size_t size = EncodedBytes(encoding, lent.values.size());
  const auto buffer = std::make_shared_for_overwrite<std::byte[]>(size);
  const std::span<std::byte> bytes(buffer.get(), size);
  Encode(encoding, lent.values, bytes);
  return {bytes, buffer};
}

absl::StatusOr<ReceivedValues> DecodeValues(ReceivedValues received, Encoding encoding) {
  const size_t bytes = TotalBytes(received.segments());
  const std::optional<size_t> count = CountOf(encoding, received.segments());
  if (!count.has_value()) {
    return absl::InvalidArgumentError("values: " + std::to_string(bytes) + " bytes are not whole " +
                                      std::string(RowOf(encoding).name) + " values");
  }
  if (encoding == Encoding::kFp32 || bytes == 0) return received;
  // A few bytes may stand for many values, so these are bounded by the largest message of fp32,
  // too.
  if (*count > kChunkBytesMax / sizeof(float)) {
    return absl::InvalidArgumentError("values: " + std::to_string(*count) +
                                      " are more than a message may bring");
  }
  std::unique_ptr<float[]> buffer(new (std::nothrow) float[*count]);
  if (buffer == nullptr) {
    return absl::ResourceExhaustedError("no memory for " + std::to_string(*count) + " values");
  }
  Decode(encoding, received.segments(), {buffer.get(), *count});
  return ReceivedValues(std::move(buffer), *count, bytes);
}

}  // namespace slipstream
