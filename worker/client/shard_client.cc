#include "worker/client/shard_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/process/steady_time.h"
#include "common/protocol/composite_push.h"
#include "common/rpc/message_bytes.h"
#include "common/wire/chunk_bytes.h"
#include "common/wire/chunk_wire.h"
#include "common/wire/shard_wire.h"

namespace slipstream {
namespace {

constexpr char kInitialize[] = "/slipstream.v1.Shard/Initialize";
constexpr char kPull[] = "/slipstream.v1.Shard/Pull";

/// How long the connection may take to release the bytes that it sent, before the caller may write
/// there. It releases them at once where a push was answered.
constexpr absl::Duration kReturnTimeout = absl::Seconds(30);

}  // namespace

ShardOptions ShardOptions::For(const RunSpec& settings, const ShardMap& map) {
  ShardOptions options;
  options.chunk_bytes = ChunkBytes(settings.wire.chunk_bytes, map, settings.wire.push_codec);
  options.push_encoding = settings.wire.push_codec;
  options.weights_encoding = settings.wire.pull_codec;
  options.channel.transport = settings.wire.transport;
  options.alone_bytes_max = AloneBytesMax(settings.wire.chunk_bytes);
  return options;
}

ShardClient::ShardClient(Place place, const ShardOptions& options, Sleeper sleeper,
                         CancelSwitch& cancel)
    : place_(std::move(place)),
      options_(options),
      sleeper_([&cancel, pause = std::move(sleeper)](absl::Duration wait) {
        return !cancel.thrown() && pause(wait) && !cancel.thrown();
      }),
      cancel_(cancel),
      connection_(place_.address, options_, loan_, cancel, place_.shard) {
  // Values in shared memory are never encoded.
  PS_CHECK(options.arena == nullptr || (options.push_encoding == Encoding::kFp32 &&
                                        options.weights_encoding == Encoding::kFp32));
  if (!place_.aggregator.empty()) aggregator_.emplace(place_.aggregator, options_, loan_, cancel);
}

Retries ShardClient::NewRetries() {
  // Whichever path calls take, the TCP channel shows whether the shard's machine can be reached.
  return {peer(), options_.retry, options_.seed + Value(place_.shard), sleeper_, options_.now};
}

PushTries ShardClient::NewTries(const PushHeader& header, bool has_values) {
  return {{.retry = options_.retry,
           .overload_timeout = options_.overload_timeout,
           .seed = options_.seed + Value(place_.shard)},
          {.has_values = has_values, .is_composite = IsComposite(header)},
          aggregator_ ? &aggregator_->use() : nullptr};
}

absl::Status ShardClient::Final(const absl::Status& failure) const {
  if (is_stopped()) return absl::CancelledError("stopped");
  if (IsTransient(failure)) return failure;
  return {failure.code(), fmt::format("{}: {}", name(), std::string(failure.message()))};
}

WeightsArrival ShardClient::ArrivalOf(std::span<float> weights, WeightsListener* listener) const {
  const std::span<float> own = weights.subspan(place_.range.begin, place_.range.size());
  return WeightsArrival(own, place_.range.begin, listener);
}

absl::Status ShardClient::NoAnswer(ShardChannel& channel, RawCall& call, Retries& retries) {
  const absl::Status status = channel.Failure(call, options_.WriteDeadline());
  if (absl::IsDeadlineExceeded(status)) retries.OnReached();
  return status;
}

absl::Status ShardClient::Initialize(InitializeHeader header, std::span<const float> weights) {
  header.count = place_.range.size();
  const std::span<const float> values = weights.subspan(place_.range.begin, header.count);
  Retries retries = NewRetries();
  const absl::Status status = retries.Persist([&] { return Send(header, values, retries); });
  return status.ok() ? AwaitReturn() : Final(status);
}

absl::Status ShardClient::Send(const InitializeHeader& header, std::span<const float> values,
                               Retries& retries) {
  ShardChannel& channel = connection_.channel();
  const absl::StatusOr<std::unique_ptr<RawCall>> started =
      channel.Start(kInitialize, options_.WriteDeadline());
  if (!started.ok()) return started.status();
  RawCall& call = **started;
  const size_t chunk_values = options_.chunk_bytes / sizeof(float);
  // Send the header first: over a slow link, values take longer than the shard waits for a caller
  // to identify itself.
  if (!call.Write(EncodeInitializeChunk(header, 0, {}), RawCall::Next::kWrites,
                  options_.WriteDeadline())) {
    return channel.Failure(call, options_.WriteDeadline());
  }
  size_t offset = 0;
  do {
    const auto piece = values.subspan(offset, std::min(chunk_values, values.size() - offset));
    const bool more = offset + piece.size() < values.size();
    const grpc::ByteBuffer message =
        EncodeInitializeChunk(std::nullopt, offset, {piece, loan_.Lend()});
    const RawCall::Next next = more ? RawCall::Next::kWrites : RawCall::Next::kReads;
    if (!call.Write(message, next, options_.WriteDeadline()))
      return channel.Failure(call, options_.WriteDeadline());
    offset += piece.size();
  } while (offset < values.size());
  call.WritesDone(options_.WriteDeadline());
  grpc::ByteBuffer reply;  // Has no fields: it only confirms.
  if (!call.Read(reply, options_.AnswerDeadline())) return NoAnswer(channel, call, retries);
  return call.Finish(options_.AnswerDeadline());
}

absl::StatusOr<ShardClient::Pulled> ShardClient::Pull(
    PullRequest request, WeightsArrival weights,
    const std::function<void(const WeightsHeader&)>& on_header) {
  request.chunk_bytes = static_cast<uint32_t>(options_.chunk_bytes);
  if (request.trains) request.weights_encoding = options_.weights_encoding;
  Retries retries = NewRetries();
  Pulled pulled;
  if (!AskAggregator(request, weights, pulled, on_header, retries)) {
    const absl::Status status = retries.Persist(
        [&] { return Ask(connection_.channel(), request, weights, pulled, on_header, retries); });
    if (!status.ok()) return Final(status);
  }
  weights.Finish();
  pulled.header = *weights.header();
  return pulled;
}

bool ShardClient::AskAggregator(const PullRequest& request, WeightsArrival& weights, Pulled& pulled,
                                const std::function<void(const WeightsHeader&)>& on_header,
                                Retries& retries) {
  const bool may_ask =
      aggregator_.has_value() && !request.trains && aggregator_->use().IsUsable(options_.now());
  if (!may_ask) return false;
  const absl::Status status =
      Ask(aggregator_->connection().channel(), request, weights, pulled, on_header, retries);
  if (status.ok()) {
    if (aggregator_->use().OnAnswer()) aggregator_->LogUsedAgain();
  } else if (!is_stopped()) {
    aggregator_->Leave(status, aggregator_->use().OnFailure(options_.now()));
  }
  return status.ok();
}

absl::Status ShardClient::Ask(ShardChannel& channel, const PullRequest& request,
                              WeightsArrival& weights, Pulled& pulled,
                              const std::function<void(const WeightsHeader&)>& on_header,
                              Retries& retries) {
  weights.StartTry();
  const absl::StatusOr<std::unique_ptr<RawCall>> started =
      channel.Start(kPull, options_.WriteDeadline());
  if (!started.ok()) return started.status();
  RawCall& call = **started;
  const grpc::ByteBuffer question = ToBytes(ToWire(request));
  if (!call.Write(question, RawCall::Next::kReads, options_.WriteDeadline()))
    return channel.Failure(call, options_.WriteDeadline());
  call.WritesDone(options_.WriteDeadline());
  while (!weights.is_complete()) {
    grpc::ByteBuffer message;
    if (!call.Read(message, options_.AnswerDeadline())) return NoAnswer(channel, call, retries);
    const absl::StatusOr<WeightsChunk> chunk = DecodeWeightsChunk(message);
    // This is the peer's fault: no setting on this side can fix it.
    if (!chunk.ok()) {
      return absl::InternalError("answer: " + std::string(chunk.status().message()));
    }
    if (chunk->header.has_value() && on_header != nullptr) on_header(*chunk->header);
    const absl::Status status =
        chunk->changes.has_value()
            ? weights.TakeChanges(chunk->header, *chunk->changes)
            : weights.Take(chunk->header, chunk->offset, chunk->values.segments());
    if (!status.ok()) return status;
    pulled.bytes += chunk->changes.has_value()
                        ? chunk->changes->blocks.size()
                        : EncodedBytes(request.weights_encoding, chunk->values.count());
    pulled.trailer = chunk->trailer;
  }
  return call.Finish(options_.AnswerDeadline());
}

absl::Status ShardClient::AwaitReturn() {
  constexpr absl::Duration kSlice = absl::Milliseconds(1);
  const absl::Time deadline = SteadyNow() + kReturnTimeout;
  absl::InlinedVector<ShardConnection*, 2> open;
  if (aggregator_ && aggregator_->connection().is_open()) {
    open.push_back(&aggregator_->connection());
  }
  if (connection_.is_open()) open.push_back(&connection_);
  while (!loan_.AwaitReturn(open.empty() ? kSlice : absl::ZeroDuration())) {
    if (SteadyNow() > deadline) {
      return absl::DeadlineExceededError(name() + ": the connection still holds what was sent");
    }
    // The transport may need a thread to release the bytes, and this is the only one.
    for (ShardConnection* const connection : open) {
      if (!loan_.AwaitReturn(absl::ZeroDuration())) connection->Poll(kSlice);
    }
  }
  return absl::OkStatus();
}

}  // namespace slipstream
