#include "common/wire/value_encoding.h"

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "common/kernels/half_decode.h"
#include "common/kernels/half_encode.h"

namespace slipstream {

LentBytes EncodeValues(LentValues lent, Encoding encoding) {
  if (encoding == Encoding::kFp32) return {std::as_bytes(lent.values), std::move(lent.owner)};
  const size_t count = lent.values.size();
  const auto buffer = std::make_shared_for_overwrite<uint16_t[]>(count);
  const std::span<uint16_t> halves(buffer.get(), count);
  if (encoding == Encoding::kBf16) {
    EncodeBf16(lent.values, halves);
  } else {
    EncodeFp16(lent.values, halves);
  }
  return {std::as_bytes(halves), buffer};
}

absl::StatusOr<ReceivedValues> DecodeValues(ReceivedValues received, Encoding encoding) {
  const size_t bytes = TotalBytes(received.segments());
  if (bytes % EncodedBytes(encoding) != 0) {
    return absl::InvalidArgumentError("values: " + std::to_string(bytes) + " bytes are not whole " +
                                      std::string(EncodingName(encoding)) + " values");
  }
  if (encoding == Encoding::kFp32 || bytes == 0) return received;
  const size_t count = bytes / EncodedBytes(encoding);
  std::unique_ptr<float[]> buffer(new (std::nothrow) float[count]);
  if (buffer == nullptr) {
    return absl::ResourceExhaustedError("no memory for " + std::to_string(count) + " values");
  }
  const std::span<float> values(buffer.get(), count);
  if (encoding == Encoding::kBf16) {
    DecodeBf16(received.segments(), values);
  } else {
    DecodeFp16(received.segments(), values);
  }
  return ReceivedValues(std::move(buffer), count, bytes);
}

}  // namespace slipstream
