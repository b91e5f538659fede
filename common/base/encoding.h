#ifndef SLIPSTREAM_COMMON_BASE_ENCODING_H_
#define SLIPSTREAM_COMMON_BASE_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace slipstream {

/// How values travel; what computes with them always has fp32. The numbers are those of
/// proto/shard.proto.
enum class Encoding : uint8_t { kFp32 = 0, kBf16 = 1, kFp16 = 2 };

/// As in run.yaml.
constexpr std::string_view EncodingName(Encoding encoding) {
  switch (encoding) {
    case Encoding::kFp32:
      return "fp32";
    case Encoding::kBf16:
      return "bf16";
    case Encoding::kFp16:
      return "fp16";
  }
  return "unknown";
}

/// Of one value.
constexpr size_t EncodedBytes(Encoding encoding) { return encoding == Encoding::kFp32 ? 4 : 2; }

/// The least magnitude that becomes infinite.
constexpr float OverflowMin(Encoding encoding) {
  switch (encoding) {
    case Encoding::kFp32:
      break;
    case Encoding::kBf16:
      return 0x1.ffp127f;
    case Encoding::kFp16:
      return 65520;
  }
  return std::numeric_limits<float>::infinity();
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_ENCODING_H_
