#ifndef SLIPSTREAM_COMMON_WIRE_VALUE_ENCODING_H_
#define SLIPSTREAM_COMMON_WIRE_VALUE_ENCODING_H_

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/encoding.h"
#include "common/kernels/segments.h"
#include "common/wire/values_codec.h"

namespace slipstream {

/// Conversions between fp32 values, with which both ends compute, and the bytes that travel.

/// Encodes values, the first of which begins a block. REQUIRES: the encoding is not fp32, and
/// `bytes` has room for exactly these values.
void Encode(Encoding encoding, std::span<const float> values, std::span<std::byte> bytes);

/// Decodes bytes, which may be cut anywhere. REQUIRES: the encoding is not fp32, and the bytes are
/// exactly these values.
void Decode(Encoding encoding, const Segments& bytes, std::span<float> values);

/// Returns the bytes to send for the lent values. As fp32 they are the values' own; otherwise they
/// are in a buffer that lives as long as gRPC needs it, and the lender has its values back on
/// return.
LentBytes EncodeValues(LentValues lent, Encoding encoding);

/// Returns values received in `encoding` as fp32. If they are fp32 already, the bytes stay where
/// they lie; otherwise they are decoded into a buffer, and the received bytes are released.
/// INVALID_ARGUMENT if they are no whole values, or more than kChunkBytesMax as fp32;
/// RESOURCE_EXHAUSTED if there is no memory.
absl::StatusOr<ReceivedValues> DecodeValues(ReceivedValues received, Encoding encoding);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_VALUE_ENCODING_H_
