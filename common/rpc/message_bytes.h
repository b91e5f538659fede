#ifndef SLIPSTREAM_COMMON_RPC_MESSAGE_BYTES_H_
#define SLIPSTREAM_COMMON_RPC_MESSAGE_BYTES_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

namespace slipstream {

/// Serialises a message, for calls that do not know its type.
inline grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

/// Parses a message. Returns false if `bytes` are no such message.
inline bool FromBytes(grpc::ByteBuffer bytes, google::protobuf::MessageLite& message) {
  grpc::ProtoBufferReader reader(&bytes);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_MESSAGE_BYTES_H_
