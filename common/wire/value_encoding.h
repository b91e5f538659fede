#ifndef SLIPSTREAM_COMMON_WIRE_VALUE_ENCODING_H_
#define SLIPSTREAM_COMMON_WIRE_VALUE_ENCODING_H_

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/encoding.h"
#include "common/kernels/segments.h"
#include "common/wire/values_codec.h"

namespace slipstream {

/// Between fp32 values, which is all that either end computes with, and the bytes that travel.

/// Encodes values, of which the first begins a block. REQUIRES: the encoding is not fp32, and
/// `bytes` has room for exactly these values.
void Encode(Encoding encoding, std::span<const float> values, std::span<std::byte> bytes);

/// Decodes bytes that are cut anywhere. REQUIRES: the encoding is not fp32, and the bytes are
/// exactly these values.
void Decode(Encoding encoding, const Segments& bytes, std::span<float> values);

/// The bytes of the lent values: those of the values themselves as fp32; otherwise of a buffer of
/// their own, which lives as long as gRPC needs it, and the lender has its values back on return.
LentBytes EncodeValues(LentValues lent, Encoding encoding);

/// What came as `encoding` as fp32: the same bytes, where they lie, if they are that already;
/// otherwise a buffer of its own, and the received bytes are let go of. INVALID_ARGUMENT if they
/// are no whole values, or more than kChunkBytesMax as fp32, RESOURCE_EXHAUSTED if there is no
/// memory.
absl::StatusOr<ReceivedValues> DecodeValues(ReceivedValues received, Encoding encoding);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_VALUE_ENCODING_H_
