#include "common/wire/chunk_wire.h"

#include <string>
#include <utility>

#include "common/layout/tensor_layout.h"
#include "common/wire/shard_wire.h"
#include "common/wire/shared_memory_wire.h"
#include "common/wire/value_encoding.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

constexpr size_t kAbsentBytesMax = (TensorLayout::kTensorsMax + 7) / 8;

/// Returns the message of a push's chunk without its values.
v1::PushChunk PushChunkWithoutValues(const std::optional<PushHeader>& header, uint64_t offset,
                                     const PushTrailer& trailer) {
  v1::PushChunk message;
  if (header) *message.mutable_header() = ToWire(*header);
  message.set_offset(offset);
  if (trailer.loss) message.set_loss(*trailer.loss);
  if (trailer.clip != 1) message.set_clip(trailer.clip);
  if (!trailer.absent.empty()) message.set_absent(trailer.absent.bits());
  return message;
}

template <typename Message>
absl::StatusOr<Encoding> EncodingOf(const Message& message) {
  return FromWire("encoding", message.encoding());
}

/// Initial weights always travel as fp32.
absl::StatusOr<Encoding> EncodingOf(const v1::InitializeRequest&) { return Encoding::kFp32; }

/// Decodes the parts that all four messages have.
template <typename Chunk, typename Message>
absl::StatusOr<Chunk> ChunkOf(absl::StatusOr<ReceivedValues> values, const Message& message) {
  if (!values.ok()) return values.status();
  const absl::StatusOr<Encoding> encoding = EncodingOf(message);
  if (!encoding.ok()) return encoding.status();
  if (message.offset() % RowOf(*encoding).block_values != 0) {
    return absl::InvalidArgumentError(
        "offset: " + std::to_string(message.offset()) + " is not where a block of " +
        std::to_string(RowOf(*encoding).block_values) + " values begins");
  }
  values = DecodeValues(*std::move(values), *encoding);
  if (!values.ok()) return values.status();
  Chunk chunk;
  chunk.offset = message.offset();
  chunk.values = *std::move(values);
  if (!message.has_header()) return chunk;
  auto header = FromWire(message.header());
  if (!header.ok()) return header.status();
  chunk.header = *std::move(header);
  return chunk;
}

template <typename Message, typename Chunk>
absl::StatusOr<Chunk> DecodeChunk(const grpc::ByteBuffer& bytes, Message& message) {
  return ChunkOf<Chunk>(DecodeWithValues(bytes, message), message);
}

/// Returns the message of a chunk of pulled weights without its values.
v1::WeightsChunk WeightsChunkWithoutValues(const std::optional<WeightsHeader>& header,
                                           uint64_t offset,
                                           const std::optional<WeightsTrailer>& trailer) {
  v1::WeightsChunk message;
  if (header) *message.mutable_header() = ToWire(*header);
  if (trailer) *message.mutable_trailer() = ToWire(*trailer);
  message.set_offset(offset);
  return message;
}

}  // namespace

grpc::ByteBuffer EncodePushChunk(const std::optional<PushHeader>& header, uint64_t offset,
                                 LentValues values, Encoding encoding, const PushTrailer& trailer) {
  return EncodePushChunk(header, offset, EncodeValues(std::move(values), encoding), encoding,
                         trailer);
}

grpc::ByteBuffer EncodePushChunk(const std::optional<PushHeader>& header, uint64_t offset,
                                 LentBytes encoded, Encoding encoding, const PushTrailer& trailer) {
  v1::PushChunk message = PushChunkWithoutValues(header, offset, trailer);
  message.set_encoding(ToWire(encoding));
  return EncodeWithValues(message, std::move(encoded));
}

grpc::ByteBuffer EncodePushChunk(const std::optional<PushHeader>& header, uint64_t offset,
                                 const SharedValues& values, const PushTrailer& trailer) {
  v1::PushChunk message = PushChunkWithoutValues(header, offset, trailer);
  *message.mutable_shared() = ToWire(values);
  return EncodeWithValues(message, {});
}

grpc::ByteBuffer EncodeRequest(const SharedMemoryRequest& request) {
  v1::PushChunk message;
  *message.mutable_shared_memory() = ToWire(request);
  return EncodeWithValues(message, {});
}

grpc::ByteBuffer EncodeWeightsChunk(const std::optional<WeightsHeader>& header, uint64_t offset,
                                    LentValues values, Encoding encoding,
                                    const std::optional<WeightsTrailer>& trailer) {
  v1::WeightsChunk message = WeightsChunkWithoutValues(header, offset, trailer);
  message.set_encoding(ToWire(encoding));
  return EncodeWithValues(message, EncodeValues(std::move(values), encoding));
}

grpc::ByteBuffer EncodeChangesChunk(const std::optional<WeightsHeader>& header,
                                    const ValueChanges& changes, std::shared_ptr<const void> owner,
                                    const std::optional<WeightsTrailer>& trailer) {
  v1::WeightsChunk message = WeightsChunkWithoutValues(header, changes.offset, trailer);
  message.set_changed_count(changes.count);
  return EncodeWithValues(message, {std::as_bytes(std::span(changes.blocks)), std::move(owner)});
}

grpc::ByteBuffer EncodeInitializeChunk(const std::optional<InitializeHeader>& header,
                                       uint64_t offset, LentValues values) {
  v1::InitializeRequest message;
  if (header) *message.mutable_header() = ToWire(*header);
  message.set_offset(offset);
  return EncodeWithValues(message, EncodeValues(std::move(values), Encoding::kFp32));
}

grpc::ByteBuffer EncodeExchangeChunk(const std::optional<PushReply>& push,
                                     const std::optional<WeightsHeader>& header, uint64_t offset,
                                     LentValues values, Encoding encoding) {
  v1::ExchangeReply message;
  if (push) *message.mutable_push() = ToWire(*push);
  if (header) *message.mutable_header() = ToWire(*header);
  message.set_offset(offset);
  message.set_encoding(ToWire(encoding));
  return EncodeWithValues(message, EncodeValues(std::move(values), encoding));
}

grpc::ByteBuffer EncodeExchangeChunk(const std::optional<PushReply>& push,
                                     const WeightsHeader& header, const SharedWeights& weights) {
  v1::ExchangeReply message;
  if (push) *message.mutable_push() = ToWire(*push);
  *message.mutable_header() = ToWire(header);
  *message.mutable_shared() = ToWire(weights);
  return EncodeWithValues(message, {});
}

grpc::ByteBuffer EncodeReply(const SharedMemoryReply& reply) {
  v1::ExchangeReply message;
  *message.mutable_shared_memory() = ToWire(reply);
  return EncodeWithValues(message, {});
}

absl::StatusOr<PushChunk> DecodePushChunk(const grpc::ByteBuffer& message) {
  v1::PushChunk wire;
  absl::StatusOr<PushChunk> chunk = DecodeChunk<v1::PushChunk, PushChunk>(message, wire);
  if (!chunk.ok()) return chunk;
  if (wire.has_loss()) chunk->trailer.loss = wire.loss();
  if (wire.has_clip()) chunk->trailer.clip = wire.clip();
  if (!(chunk->trailer.clip > 0 && chunk->trailer.clip <= 1)) {
    return absl::InvalidArgumentError("clip: not in (0, 1]");
  }
  if (wire.absent().size() > kAbsentBytesMax) {
    return absl::InvalidArgumentError("absent: more tensors than a model can have");
  }
  chunk->trailer.absent = TensorSet(wire.absent());
  if (wire.has_shared()) chunk->shared = FromWire(wire.shared());
  if (chunk->shared.has_value() && chunk->values.count() > 0) {
    return absl::InvalidArgumentError("shared: values came as well");
  }
  if (!wire.has_shared_memory()) return chunk;
  const absl::StatusOr<SharedMemoryRequest> request = FromWire(wire.shared_memory());
  if (!request.ok()) return request.status();
  chunk->request = *request;
  return chunk;
}

absl::StatusOr<WeightsChunk> DecodeWeightsChunk(const grpc::ByteBuffer& message) {
  v1::WeightsChunk wire;
  absl::StatusOr<ReceivedValues> values = DecodeWithValues(message, wire);
  if (!values.ok()) return values.status();
  std::optional<ValueChanges> changes;
  if (wire.has_changed_count()) {
    changes = {.offset = wire.offset(), .count = wire.changed_count()};
    for (const ByteSegment& piece : values->segments()) {
      changes->blocks.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    values = ReceivedValues();
  }
  absl::StatusOr<WeightsChunk> chunk = ChunkOf<WeightsChunk>(std::move(values), wire);
  if (!chunk.ok()) return chunk;
  chunk->changes = std::move(changes);
  if (wire.has_trailer()) chunk->trailer = FromWire(wire.trailer());
  return chunk;
}

absl::StatusOr<InitializeChunk> DecodeInitializeChunk(const grpc::ByteBuffer& message) {
  v1::InitializeRequest wire;
  return DecodeChunk<v1::InitializeRequest, InitializeChunk>(message, wire);
}

absl::StatusOr<ExchangeChunk> DecodeExchangeChunk(const grpc::ByteBuffer& message) {
  v1::ExchangeReply wire;
  absl::StatusOr<ExchangeChunk> chunk =
      DecodeChunk<v1::ExchangeReply, ExchangeChunk>(message, wire);
  if (!chunk.ok()) return chunk;
  if (wire.has_shared()) chunk->shared = FromWire(wire.shared());
  if (wire.has_shared_memory()) chunk->reply = FromWire(wire.shared_memory());
  if (!wire.has_push()) return chunk;
  absl::StatusOr<PushReply> push = FromWire(wire.push());
  if (!push.ok()) return push.status();
  chunk->push = *std::move(push);
  return chunk;
}

}  // namespace slipstream
