#include "worker/client/shard_client.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <utility>

#include "common/wire/chunk_wire.h"
#include "common/wire/shard_wire.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {
namespace {

constexpr char kInitialize[] = "/slipstream.v1.Shard/Initialize";
constexpr char kPull[] = "/slipstream.v1.Shard/Pull";
constexpr char kExchange[] = "/slipstream.v1.Shard/Exchange";

grpc::ByteBuffer Serialized(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

/// What a peer got wrong is no setting of ours.
absl::Status PeerFault(const absl::Status& status) {
  return absl::InternalError("answer: " + std::string(status.message()));
}

}  // namespace

ShardClient::ShardClient(std::string address, const Options& options, CancelSwitch& cancel)
    : address_(std::move(address)),
      options_(options),
      channel_(grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(),
                                         ClientArguments(options.transport))),
      cancel_(cancel) {}

std::unique_ptr<RawCall> ShardClient::Start(const std::string& method) {
  return std::make_unique<RawCall>(channel_, method, cancel_, WriteDeadline());
}

absl::Status ShardClient::Named(const absl::Status& status) const {
  return {status.code(), fmt::format("shard at {}: {}", address_, std::string(status.message()))};
}

absl::Status ShardClient::Failure(RawCall& call) const {
  const absl::Status status = call.Finish(WriteDeadline());
  return Named(status.ok() ? absl::UnavailableError("ended the call early") : status);
}

absl::Status ShardClient::Initialize(const InitializeHeader& header,
                                     std::span<const float> values) {
  const std::unique_ptr<RawCall> call = Start(kInitialize);
  const size_t chunk_values = options_.chunk_bytes / sizeof(float);
  size_t offset = 0;
  do {
    const auto piece = values.subspan(offset, std::min(chunk_values, values.size() - offset));
    const bool more = offset + piece.size() < values.size();
    const grpc::ByteBuffer message = EncodeInitializeChunk(
        offset == 0 ? std::optional(header) : std::nullopt, offset, {piece, loan_.Lend()});
    if (!call->Write(message, more, WriteDeadline())) return Failure(*call);
    offset += piece.size();
  } while (offset < values.size());
  call->WritesDone(WriteDeadline());
  grpc::ByteBuffer reply;  // Says nothing but that it came.
  if (!call->Read(reply, AnswerDeadline())) return Failure(*call);
  const absl::Status status = call->Finish(AnswerDeadline());
  return status.ok() ? status : Named(status);
}

absl::StatusOr<WeightsHeader> ShardClient::Pull(PullRequest request, std::span<float> weights) {
  request.chunk_bytes = static_cast<uint32_t>(options_.chunk_bytes);
  const std::unique_ptr<RawCall> call = Start(kPull);
  if (!call->Write(Serialized(ToWire(request)), false, WriteDeadline())) return Failure(*call);
  call->WritesDone(WriteDeadline());
  WeightsArrival arrival(weights);
  while (!arrival.is_complete()) {
    grpc::ByteBuffer message;
    if (!call->Read(message, AnswerDeadline())) return Failure(*call);
    const absl::StatusOr<WeightsChunk> chunk = DecodeWeightsChunk(message);
    if (!chunk.ok()) return Named(PeerFault(chunk.status()));
    const absl::Status status = arrival.Take(chunk->header, chunk->offset, chunk->values);
    if (!status.ok()) return Named(status);
  }
  const absl::Status status = call->Finish(AnswerDeadline());
  if (!status.ok()) return Named(status);
  return *arrival.header();
}

absl::StatusOr<ShardClient::Answer> ShardClient::Exchange(PushHeader header,
                                                          std::span<const float> values,
                                                          std::span<float> weights) {
  header.count = values.size();
  header.chunk_bytes = static_cast<uint32_t>(options_.chunk_bytes);
  if (!exchange_) exchange_ = Start(kExchange);
  absl::StatusOr<Answer> answer = WritePush(header, values)
                                      ? ReadAnswer(header.pull, weights)
                                      : absl::StatusOr<Answer>(Failure(*exchange_));
  if (!answer.ok()) exchange_.reset();  // The next try starts over on a stream of its own.
  return answer;
}

bool ShardClient::WritePush(const PushHeader& header, std::span<const float> values) {
  const size_t chunk_values = options_.chunk_bytes / sizeof(float);
  size_t offset = 0;
  do {
    const auto piece = values.subspan(offset, std::min(chunk_values, values.size() - offset));
    const bool more = offset + piece.size() < values.size();
    const grpc::ByteBuffer message = EncodePushChunk(
        offset == 0 ? std::optional(header) : std::nullopt, offset, {piece, loan_.Lend()});
    if (!exchange_->Write(message, more, WriteDeadline())) return false;
    offset += piece.size();
  } while (offset < values.size());
  return true;
}

absl::StatusOr<ShardClient::Answer> ShardClient::ReadAnswer(bool pull, std::span<float> weights) {
  std::optional<PushReply> push;
  WeightsArrival arrival(weights);
  for (;;) {
    grpc::ByteBuffer message;
    if (!exchange_->Read(message, AnswerDeadline())) return Failure(*exchange_);
    absl::StatusOr<ExchangeChunk> chunk = DecodeExchangeChunk(message);
    if (!chunk.ok()) return Named(PeerFault(chunk.status()));
    if (chunk->push.has_value() == push.has_value()) {
      return Named(absl::InternalError("answer: not one outcome, in its first message"));
    }
    if (chunk->push) push = chunk->push;
    if (!pull || IsRefusal(push->outcome)) return Answer{*std::move(push), std::nullopt};
    if (chunk->push && !chunk->header) continue;  // The weights follow.
    const absl::Status status = arrival.Take(chunk->header, chunk->offset, chunk->values);
    if (!status.ok()) return Named(status);
    if (arrival.is_complete()) return Answer{*std::move(push), arrival.header()};
  }
}

absl::Status ShardClient::AwaitReturn(absl::Duration timeout) {
  constexpr absl::Duration kSlice = absl::Milliseconds(1);
  const absl::Time deadline = absl::Now() + timeout;
  while (!loan_.AwaitReturn(exchange_ ? absl::ZeroDuration() : kSlice)) {
    if (absl::Now() > deadline) {
      return Named(absl::DeadlineExceededError("the connection still holds what was sent"));
    }
    // The transport may need a thread to let go, and there is none but this.
    if (exchange_) exchange_->Poll(kSlice);
  }
  return absl::OkStatus();
}

}  // namespace slipstream
