#ifndef SLIPSTREAM_COMMON_WIRE_VALUES_CODEC_H_
#define SLIPSTREAM_COMMON_WIRE_VALUES_CODEC_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/kernels/segments.h"

namespace slipstream {

/// Conversions between messages that carry values (`bytes values = 15`, the last field) and gRPC
/// buffers, without copying the payload. The bytes are those of protobuf's own encoder.

/// Bytes lent to gRPC for as long as it needs them.
struct LentBytes {
  std::span<const std::byte> bytes;

  /// Keeps `bytes` alive and unchanged. The lender owns it and, from EncodeWithValues on, so does
  /// every gRPC buffer that still refers to the bytes. gRPC releases it, on a thread of its own,
  /// when the bytes have been handed to the kernel or the call is over. So the owner's deleter
  /// tells a lender when the bytes may be written again.
  std::shared_ptr<const void> owner;
};

/// Values lent to gRPC, like LentBytes.
struct LentValues {
  std::span<const float> values;
  std::shared_ptr<const void> owner;
};

/// Returns a message of `rest` followed by field 15 with the lent bytes; without that field if
/// there are none.
/// REQUIRES: `rest` has no field above 14 set.
grpc::ByteBuffer EncodeWithValues(const google::protobuf::MessageLite& rest, LentBytes lent);

/// Received values, either where gRPC left them or in memory of their own: decoded to fp32, or
/// copied together.
///
/// Not thread-safe: one owner. Movable only, because a short slice holds its bytes in itself.
class ReceivedValues {
 public:
  ReceivedValues() = default;

  /// Takes `slices` and the segments of the values, which lie in them.
  ReceivedValues(std::vector<grpc::Slice> slices, Segments segments)
      : slices_(std::move(slices)),
        segments_(std::move(segments)),
        message_bytes_(TotalBytes(segments_)) {}

  /// Takes `count` decoded values, which took `message_bytes` bytes of a message.
  ReceivedValues(std::unique_ptr<const float[]> values, size_t count, size_t message_bytes)
      : decoded_(std::move(values)),
        segments_{std::as_bytes(std::span(decoded_.get(), count))},
        message_bytes_(message_bytes) {}

  /// Values to be written: the maker writes them to `to` before anybody reads them.
  struct Buffer;
  static Buffer MakeBuffer(size_t count);

  ReceivedValues(ReceivedValues&&) = default;
  ReceivedValues& operator=(ReceivedValues&&) = default;

  /// The bytes of the values. They stay valid while this object lives, also after it was moved.
  const Segments& segments() const { return segments_; }

  /// Returns the number of fp32 values.
  size_t count() const { return TotalBytes(segments_) / sizeof(float); }

  /// Returns whether the values lie in many small pieces, each of which may keep a whole buffer of
  /// the transport alive: copy them to keep them for long.
  bool is_scattered() const {
    constexpr size_t kPieceBytesMin = 4096;
    constexpr size_t kPiecesMin = 8;
    return slices_.size() > kPiecesMin + message_bytes_ / kPieceBytesMin;
  }

  /// Returns how many bytes the values took in their message.
  size_t message_bytes() const { return message_bytes_; }

 private:
  std::vector<grpc::Slice> slices_;
  std::unique_ptr<const float[]> decoded_;
  Segments segments_;
  size_t message_bytes_ = 0;
};

struct ReceivedValues::Buffer {
  ReceivedValues values;
  std::span<float> to;  // Where the values of `values` are.
};

/// The most bytes that the fields beside the values may take.
inline constexpr size_t kRestBytesMax = size_t{256} << 10;

/// Parses all fields but the values into `rest`, and finds the values. Accepts every legal
/// encoding: fields in any order, unknown and repeated (for the values the last one counts). Fails
/// with INVALID_ARGUMENT for anything else, for groups, and if the other fields take more than
/// `kRestBytesMax`. DecodeValues decides what the values are, and whether they are whole.
absl::StatusOr<ReceivedValues> DecodeWithValues(const grpc::ByteBuffer& message,
                                                google::protobuf::MessageLite& rest);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_VALUES_CODEC_H_
