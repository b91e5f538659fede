#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/wire/chunk_wire.h"
#include "proto/shard.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace slipstream {
namespace {

/// Returns the message in slices of `piece` bytes, each followed by an empty slice. If `piece` is
/// 0, returns it in one slice.
grpc::ByteBuffer Cut(std::string_view message, size_t piece) {
  std::vector<grpc::Slice> slices;
  if (piece == 0) slices.emplace_back(message.data(), message.size());
  for (size_t at = 0; piece > 0 && at < message.size(); at += piece) {
    const std::string_view bytes = message.substr(at, piece);
    slices.emplace_back(bytes.data(), bytes.size());
    slices.emplace_back();
  }
  return {slices.data(), slices.size()};
}

std::string BytesOf(const ReceivedValues& values) {
  std::string bytes;
  for (const ByteSegment& segment : values.segments()) {
    bytes.append(reinterpret_cast<const char*>(segment.data()), segment.size());
  }
  return bytes;
}

bool HaveSameRest(const PushChunk& a, const PushChunk& b) {
  return a.shared == b.shared && a.request == b.request;
}
bool HaveSameRest(const ExchangeChunk& a, const ExchangeChunk& b) {
  return a.push == b.push && a.shared == b.shared && a.reply == b.reply;
}
bool HaveSameRest(const WeightsChunk&, const WeightsChunk&) { return true; }
bool HaveSameRest(const InitializeChunk&, const InitializeChunk&) { return true; }

template <typename Chunk>
bool AreSame(const Chunk& a, const Chunk& b) {
  return a.header == b.header && a.offset == b.offset && HaveSameRest(a, b) &&
         BytesOf(a.values) == BytesOf(b.values);
}

/// Returns a copy of the chunk's values, aligned for floats.
LentValues Copied(const ReceivedValues& received) {
  const std::string bytes = BytesOf(received);
  const auto values = std::make_shared<std::vector<float>>(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values->data(), bytes.data(), bytes.size());
  return {*values, values};
}

grpc::ByteBuffer Encoded(const PushChunk& chunk) {
  if (chunk.request.has_value()) return EncodeRequest(*chunk.request);
  if (chunk.shared.has_value()) {
    return EncodePushChunk(chunk.header, chunk.offset, *chunk.shared, chunk.trailer);
  }
  return EncodePushChunk(chunk.header, chunk.offset, Copied(chunk.values), Encoding::kFp32,
                         chunk.trailer);
}
grpc::ByteBuffer Encoded(const WeightsChunk& chunk) {
  return EncodeWeightsChunk(chunk.header, chunk.offset, Copied(chunk.values));
}
grpc::ByteBuffer Encoded(const InitializeChunk& chunk) {
  return EncodeInitializeChunk(chunk.header, chunk.offset, Copied(chunk.values));
}
grpc::ByteBuffer Encoded(const ExchangeChunk& chunk) {
  return EncodeExchangeChunk(chunk.push, chunk.header, chunk.offset, Copied(chunk.values));
}

// Returns whether an encoder can express the whole chunk. Some fields cannot be encoded beside the
// rest, and would be lost.
bool IsOneThing(const PushChunk& chunk) {
  const bool has_push = chunk.header.has_value() || chunk.offset > 0 || chunk.values.count() > 0 ||
                        chunk.shared.has_value();
  return !chunk.request.has_value() || !has_push;
}
bool IsOneThing(const ExchangeChunk& chunk) {
  return !chunk.shared.has_value() && !chunk.reply.has_value();
}
bool IsOneThing(const WeightsChunk&) { return true; }
bool IsOneThing(const InitializeChunk&) { return true; }

template <typename Message>
bool IsFp32(const Message& message) {
  return message.encoding() == v1::Encoding::FP32;
}
bool IsFp32(const v1::InitializeRequest&) { return true; }

/// Compares with protobuf's own parser, which decides whether the input is a message, and what it
/// contains.
template <typename Message, typename Chunk>
void CompareWithProtobuf(std::string_view input, const absl::StatusOr<Chunk>& chunk) {
  Message message;
  const bool is_message = message.ParseFromArray(input.data(), static_cast<int>(input.size()));
  if (chunk.ok()) {
    PS_CHECK(is_message);
    PS_CHECK(message.offset() == chunk->offset);
    PS_CHECK(!IsFp32(message) || message.values() == BytesOf(chunk->values));
  } else if (is_message) {
    // Protobuf also accepts groups, and truncates a field's number to 32 bits.
    const std::string reason(chunk.status().message());
    PS_CHECK(!reason.starts_with("malformed message") || reason.find("wire type") != reason.npos ||
             reason.ends_with("no field number"));
  }
}

template <typename Message, typename Chunk>
void FuzzChunk(std::string_view input, absl::StatusOr<Chunk> (*decode)(const grpc::ByteBuffer&)) {
  const absl::StatusOr<Chunk> whole = decode(Cut(input, 0));
  for (const size_t piece : {1, 7}) {
    const absl::StatusOr<Chunk> cut = decode(Cut(input, piece));
    PS_CHECK(cut.status() == whole.status());
    PS_CHECK(!cut.ok() || AreSame(*cut, *whole));
  }
  CompareWithProtobuf<Message>(input, whole);
  if (!whole.ok() || !IsOneThing(*whole)) return;
  const absl::StatusOr<Chunk> again = decode(Encoded(*whole));
  PS_CHECK(again.ok());
  PS_CHECK(AreSame(*again, *whole));
}

}  // namespace

void FuzzPushChunk(std::string_view input) { FuzzChunk<v1::PushChunk>(input, DecodePushChunk); }

void FuzzWeightsChunk(std::string_view input) {
  FuzzChunk<v1::WeightsChunk>(input, DecodeWeightsChunk);
}

void FuzzInitializeChunk(std::string_view input) {
  FuzzChunk<v1::InitializeRequest>(input, DecodeInitializeChunk);
}

void FuzzExchangeChunk(std::string_view input) {
  FuzzChunk<v1::ExchangeReply>(input, DecodeExchangeChunk);
}

}  // namespace slipstream
