#ifndef SLIPSTREAM_COMMON_WIRE_CHUNK_WIRE_H_
#define SLIPSTREAM_COMMON_WIRE_CHUNK_WIRE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/encoding.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/values_codec.h"

namespace slipstream {

/// The messages of proto/shard.proto that carry values, as structs with the payload borrowed.
/// `offset` counts values from the begin of the shard's range. Values are fp32 here, whatever their
/// encoding in the message.

/// PushChunk: one piece of a push, whose values may lie elsewhere; or a request between pushes. The
/// chunk that completes the push may carry PushHeader::trailer.
struct PushChunk {
  std::optional<PushHeader> header;
  uint64_t offset = 0;
  ReceivedValues values;
  std::optional<SharedValues> shared;
  PushTrailer trailer;
  std::optional<SharedMemoryRequest> request;
};

/// WeightsChunk: one piece of pulled weights.
struct WeightsChunk {
  std::optional<WeightsHeader> header;
  uint64_t offset = 0;
  ReceivedValues values;
  std::optional<ValueChanges> changes;
  std::optional<WeightsTrailer> trailer;
};

/// InitializeRequest: one piece of the initial weights.
struct InitializeChunk {
  std::optional<InitializeHeader> header;
  uint64_t offset = 0;
  ReceivedValues values;
};

/// ExchangeReply: the outcome of a push, or one piece of weights, or both; or the answer to a
/// request between pushes. The weights may lie elsewhere.
struct ExchangeChunk {
  std::optional<PushReply> push;
  std::optional<WeightsHeader> header;
  uint64_t offset = 0;
  ReceivedValues values;
  std::optional<SharedWeights> shared;
  std::optional<SharedMemoryReply> reply;
};

/// Encodes a piece of a push. The payload is borrowed if it is fp32; otherwise the message owns a
/// copy.
grpc::ByteBuffer EncodePushChunk(const std::optional<PushHeader>& header, uint64_t offset,
                                 LentValues values, Encoding encoding = Encoding::kFp32,
                                 const PushTrailer& trailer = {});
grpc::ByteBuffer EncodePushChunk(const std::optional<PushHeader>& header, uint64_t offset,
                                 const SharedValues& values, const PushTrailer& trailer = {});

/// Encodes values that were encoded before.
grpc::ByteBuffer EncodePushChunk(const std::optional<PushHeader>& header, uint64_t offset,
                                 LentBytes encoded, Encoding encoding,
                                 const PushTrailer& trailer = {});
grpc::ByteBuffer EncodeRequest(const SharedMemoryRequest& request);
grpc::ByteBuffer EncodeWeightsChunk(const std::optional<WeightsHeader>& header, uint64_t offset,
                                    LentValues values, Encoding encoding = Encoding::kFp32,
                                    const std::optional<WeightsTrailer>& trailer = std::nullopt);

/// Encodes changes in place of values. The blocks are borrowed; `owner` keeps them.
grpc::ByteBuffer EncodeChangesChunk(const std::optional<WeightsHeader>& header,
                                    const ValueChanges& changes, std::shared_ptr<const void> owner,
                                    const std::optional<WeightsTrailer>& trailer);
grpc::ByteBuffer EncodeInitializeChunk(const std::optional<InitializeHeader>& header,
                                       uint64_t offset, LentValues values);
grpc::ByteBuffer EncodeExchangeChunk(const std::optional<PushReply>& push,
                                     const std::optional<WeightsHeader>& header, uint64_t offset,
                                     LentValues values, Encoding encoding = Encoding::kFp32);
grpc::ByteBuffer EncodeExchangeChunk(const std::optional<PushReply>& push,
                                     const WeightsHeader& header, const SharedWeights& weights);
grpc::ByteBuffer EncodeReply(const SharedMemoryReply& reply);

/// Decode a message. They fail with INVALID_ARGUMENT naming the field, or RESOURCE_EXHAUSTED if
/// there is no memory to decode values into.
absl::StatusOr<PushChunk> DecodePushChunk(const grpc::ByteBuffer& message);
absl::StatusOr<WeightsChunk> DecodeWeightsChunk(const grpc::ByteBuffer& message);
absl::StatusOr<InitializeChunk> DecodeInitializeChunk(const grpc::ByteBuffer& message);
absl::StatusOr<ExchangeChunk> DecodeExchangeChunk(const grpc::ByteBuffer& message);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_CHUNK_WIRE_H_
