#include "worker/client/shard_client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/rpc/message_bytes.h"
#include "common/wire/shard_wire.h"

namespace slipstream {
namespace {

constexpr char kInitialize[] = "/slipstream.v1.Shard/Initialize";
constexpr char kPull[] = "/slipstream.v1.Shard/Pull";
constexpr char kExchange[] = "/slipstream.v1.Shard/Exchange";

/// What a peer got wrong is no setting of ours.
absl::Status PeerFault(const absl::Status& status) {
  return absl::InternalError("answer: " + std::string(status.message()));
}

}  // namespace

ShardClient::ShardClient(std::string address, const Options& options, CancelSwitch& cancel)
    : address_(std::move(address)),
      options_(options),
      cancel_(cancel),
      channel_(address_, options.channel, cancel) {
  // Values in shared memory are never encoded.
  PS_CHECK(options.arena == nullptr || options.weights_encoding == Encoding::kFp32);
}

absl::StatusOr<std::unique_ptr<RawCall>> ShardClient::Start(const std::string& method) {
  is_answer_late_ = false;
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = channel_.Get();
  if (!channel.ok()) return Named(channel.status());
  return std::make_unique<RawCall>(*channel, method, &cancel_, WriteDeadline());
}

absl::Status ShardClient::Named(const absl::Status& status) const {
  return {status.code(), fmt::format("shard at {}: {}", address_, std::string(status.message()))};
}

absl::Status ShardClient::Failure(RawCall& call) {
  const absl::Status status = call.Finish(WriteDeadline());
  channel_.OnFailure();
  return Named(status.ok() ? absl::UnavailableError("ended the call early") : status);
}

absl::Status ShardClient::NoAnswer(RawCall& call) {
  const absl::Status status = Failure(call);
  is_answer_late_ = absl::IsDeadlineExceeded(status);
  return status;
}

absl::Status ShardClient::Initialize(const InitializeHeader& header,
                                     std::span<const float> values) {
  const absl::StatusOr<std::unique_ptr<RawCall>> started = Start(kInitialize);
  if (!started.ok()) return started.status();
  RawCall& call = **started;
  const size_t chunk_values = options_.chunk_bytes / sizeof(float);
  size_t offset = 0;
  do {
    const auto piece = values.subspan(offset, std::min(chunk_values, values.size() - offset));
    const bool more = offset + piece.size() < values.size();
    const grpc::ByteBuffer message = EncodeInitializeChunk(
        offset == 0 ? std::optional(header) : std::nullopt, offset, {piece, loan_.Lend()});
    const RawCall::Next next = more ? RawCall::Next::kWrites : RawCall::Next::kReads;
    if (!call.Write(message, next, WriteDeadline())) return Failure(call);
    offset += piece.size();
  } while (offset < values.size());
  call.WritesDone(WriteDeadline());
  grpc::ByteBuffer reply;  // Says nothing but that it came.
  if (!call.Read(reply, AnswerDeadline())) return NoAnswer(call);
  const absl::Status status = call.Finish(AnswerDeadline());
  return status.ok() ? status : Named(status);
}

absl::Status ShardClient::Pull(PullRequest request, WeightsArrival& weights) {
  request.chunk_bytes = static_cast<uint32_t>(options_.chunk_bytes);
  if (request.trains) request.weights_encoding = options_.weights_encoding;
  weights.StartTry();
  const absl::StatusOr<std::unique_ptr<RawCall>> started = Start(kPull);
  if (!started.ok()) return started.status();
  RawCall& call = **started;
  const grpc::ByteBuffer question = ToBytes(ToWire(request));
  if (!call.Write(question, RawCall::Next::kReads, WriteDeadline())) return Failure(call);
  call.WritesDone(WriteDeadline());
  while (!weights.is_complete()) {
    grpc::ByteBuffer message;
    if (!call.Read(message, AnswerDeadline())) return NoAnswer(call);
    const absl::StatusOr<WeightsChunk> chunk = DecodeWeightsChunk(message);
    if (!chunk.ok()) return Named(PeerFault(chunk.status()));
    const absl::Status status =
        weights.Take(chunk->header, chunk->offset, chunk->values.segments());
    if (!status.ok()) return Named(status);
  }
  const absl::Status status = call.Finish(AnswerDeadline());
  return status.ok() ? status : Named(status);
}

absl::StatusOr<PushReply> ShardClient::Exchange(ShardExchange& exchange) {
  is_answer_late_ = false;
  exchange.header.count = exchange.values.size();
  exchange.header.chunk_bytes = static_cast<uint32_t>(options_.chunk_bytes);
  exchange.header.weights_encoding = options_.weights_encoding;
  exchange.header.holds_base = exchange.weights.Holds(exchange.header.life, exchange.header.base);
  exchange.weights.StartTry();
  if (!exchange_) {
    absl::StatusOr<std::unique_ptr<RawCall>> started = Start(kExchange);
    if (!started.ok()) return started.status();
    exchange_ = *std::move(started);
  }
  absl::Status written = ShareMemory();
  if (written.ok()) written = WritePush(exchange);
  absl::StatusOr<PushReply> reply = written.ok() ? ReadAnswer(exchange) : written;
  if (!reply.ok()) {  // The next try starts over on a stream of its own.
    link_.reset();
    exchange_.reset();
    has_tried_to_share_ = false;
  }
  exchange.times.end = absl::Now();
  if (reply.ok()) exchange.times.busy += exchange.times.end - exchange.times.push_end;
  return reply;
}

absl::Status ShardClient::ShareMemory() {
  const bool may = options_.arena != nullptr && channel_.is_local();
  if (has_tried_to_share_ || has_given_up_sharing_ || !may) return absl::OkStatus();
  has_tried_to_share_ = true;
  absl::StatusOr<std::unique_ptr<SharedLink>> link =
      SharedLink::Attach(*exchange_, *options_.arena, WriteDeadline(), cancel_);
  const bool must = options_.channel.transport == ShardChannel::Transport::kShm;
  const bool is_refused = absl::IsFailedPrecondition(link.status());
  const std::string reason(link.status().message());
  if (is_refused && must) {
    // The shard is on this machine; what it lacks now it may have later.
    return Named(absl::UnavailableError(fmt::format(
        "wire.transport is shm, and no memory can be shared: {}; use auto or unix", reason)));
  }
  if (!link.ok() && !is_refused) return SharingFailure(link.status());
  std::string told = is_refused ? fmt::format("no reason=\"{}\"", reason) : "yes";
  if (told != told_) spdlog::info("sharing memory with shard at={} shared={}", address_, told);
  told_ = std::move(told);
  if (link.ok()) link_ = *std::move(link);
  return absl::OkStatus();
}

absl::Status ShardClient::SharingFailure(const absl::Status& why) {
  if (absl::IsUnavailable(why)) return Failure(*exchange_);
  const bool may_do_without = options_.channel.transport == ShardChannel::Transport::kAuto;
  const bool is_of_memory =
      absl::IsInternal(why) || absl::IsResourceExhausted(why) || absl::IsFailedPrecondition(why);
  if (!may_do_without || !is_of_memory) return Named(why);
  has_given_up_sharing_ = true;
  spdlog::warn("sharing no more memory with shard at={} reason=\"{}\"", address_,
               std::string(why.message()));
  return Named(absl::UnavailableError(why.message()));
}

absl::StatusOr<grpc::ByteBuffer> ShardClient::PushMessage(const ShardExchange& exchange,
                                                          uint64_t begin, uint64_t end,
                                                          bool is_first) {
  const auto header = is_first ? std::optional(exchange.header) : std::nullopt;
  const std::span<const float> values = exchange.values.subspan(begin, end - begin);
  if (exchange.encoder != nullptr && !values.empty()) {
    LentBytes encoded = exchange.encoder->Encode(exchange.values, begin, end);
    encoded.owner = loan_.Lend(std::move(encoded.owner));
    return EncodePushChunk(header, begin, std::move(encoded), exchange.encoder->encoding());
  }
  if (link_ == nullptr || values.empty()) {
    return EncodePushChunk(header, begin, LentValues{values, loan_.Lend()});
  }
  const absl::StatusOr<SharedValues> placed = link_->Place(values, WriteDeadline());
  if (!placed.ok()) return placed.status();
  return EncodePushChunk(header, begin, *placed);
}

absl::Status ShardClient::WritePush(ShardExchange& exchange) {
  const size_t chunk_values = options_.chunk_bytes / sizeof(float);
  const size_t count = exchange.values.size();
  GradientFeed* const feed = exchange.feed;
  bool is_first = true;
  size_t end = count;
  do {
    const size_t begin = end == 0 ? 0 : (end - 1) / chunk_values * chunk_values;
    const bool goes_on =
        feed == nullptr ||
        (begin > 0 ? feed->AwaitFinal(exchange.feed_begin + begin) : feed->AwaitSeal());
    if (!goes_on) return absl::AbortedError("the step was given up");
    const absl::Time begun = absl::Now();
    if (is_first) exchange.times.push_begin = begun;
    const absl::StatusOr<grpc::ByteBuffer> message = PushMessage(exchange, begin, end, is_first);
    if (!message.ok()) return SharingFailure(message.status());
    const absl::Status written = Write(*message, AfterChunk(exchange, begin));
    if (!written.ok()) return written;
    exchange.times.push_end = absl::Now();
    exchange.times.busy += exchange.times.push_end - begun;
    is_first = false;
    end = begin;
  } while (end > 0);
  return absl::OkStatus();
}

RawCall::Next ShardClient::AfterChunk(const ShardExchange& exchange, size_t begin) const {
  if (begin == 0) return RawCall::Next::kReads;
  const GradientFeed* const feed = exchange.feed;
  const size_t next = begin - options_.chunk_bytes / sizeof(float);
  const bool is_there =
      feed == nullptr || (next > 0 ? feed->IsDecided(exchange.feed_begin + next) : feed->is_over());
  if (!is_there) return RawCall::Next::kPauses;
  return RawCall::Next::kWrites;
}

absl::Status ShardClient::Write(const grpc::ByteBuffer& message, RawCall::Next next) {
  if (link_ == nullptr) {
    if (exchange_->Write(message, next, WriteDeadline())) return absl::OkStatus();
    return Failure(*exchange_);
  }
  const absl::Status sent = link_->Send(message);
  return sent.ok() ? sent : SharingFailure(sent);
}

absl::StatusOr<grpc::ByteBuffer> ShardClient::ReadMessage(bool& is_on_stream) {
  if (!is_on_stream) {
    absl::StatusOr<std::optional<grpc::ByteBuffer>> message = link_->Receive(AnswerDeadline());
    if (!message.ok()) {
      is_answer_late_ = absl::IsDeadlineExceeded(message.status());
      return SharingFailure(message.status());
    }
    if (message->has_value()) return **std::move(message);
    is_on_stream = true;
  }
  grpc::ByteBuffer message;
  if (!exchange_->Read(message, AnswerDeadline())) return NoAnswer(*exchange_);
  if (link_ != nullptr) exchange_->ReadAhead();
  return message;
}

absl::StatusOr<PushReply> ShardClient::ReadAnswer(ShardExchange& exchange) {
  std::optional<PushReply> push;
  bool is_on_stream = link_ == nullptr;
  for (;;) {
    const absl::StatusOr<grpc::ByteBuffer> message = ReadMessage(is_on_stream);
    if (!message.ok()) return message.status();
    absl::StatusOr<ExchangeChunk> chunk = DecodeExchangeChunk(*message);
    if (!chunk.ok()) return Named(PeerFault(chunk.status()));
    if (chunk->push.has_value() == push.has_value()) {
      return Named(absl::InternalError("answer: not one outcome, in its first message"));
    }
    if (chunk->push) {
      push = chunk->push;
      if (link_ != nullptr) link_->OnAnswer();
      exchange.times.answered = absl::Now();
    }
    const bool has_weights = exchange.header.pull && !IsRefusal(push->outcome);
    if (has_weights && chunk->push && !chunk->header) continue;  // The weights follow.
    if (!has_weights || chunk->header) {
      const absl::Status taken = exchange.on_answer({*push, chunk->header});
      if (!taken.ok()) return taken;
    }
    if (!has_weights) return *push;
    const absl::Status status = TakeWeights(*chunk, exchange.weights);
    if (!status.ok()) return Named(status);
    if (exchange.weights.is_complete()) return *push;
  }
}

absl::Status ShardClient::TakeWeights(const ExchangeChunk& chunk, WeightsArrival& weights) {
  if (chunk.shared.has_value()) return CopyShared(chunk, weights);
  return weights.Take(chunk.header, chunk.offset, chunk.values.segments());
}

absl::Status ShardClient::CopyShared(const ExchangeChunk& chunk, WeightsArrival& weights) {
  if (link_ == nullptr || chunk.values.count() > 0) {
    return absl::InternalError("answer: in shared memory that was not agreed on");
  }
  const absl::StatusOr<std::span<const float>> values =
      link_->Find(*chunk.shared, weights.size(), WriteDeadline());
  if (!values.ok()) return SharingFailure(values.status());
  const size_t chunk_values = options_.chunk_bytes / sizeof(float);
  for (size_t begin = 0; begin < values->size(); begin += chunk_values) {
    const auto piece = values->subspan(begin, std::min(chunk_values, values->size() - begin));
    const absl::Status taken =
        weights.Take(begin == 0 ? chunk.header : std::nullopt, begin, {std::as_bytes(piece)},
                     [&] { return link_->IsIntact(*chunk.shared); });
    if (!taken.ok()) return taken;
  }
  // The weights are there; if the stream has ended, the next exchange finds that out.
  const grpc::ByteBuffer release = EncodeRequest({.step = SharedMemoryRequest::Step::kRelease});
  (void)link_->Send(release);
  return absl::OkStatus();
}

absl::Status ShardClient::AwaitReturn(absl::Duration timeout) {
  constexpr absl::Duration kSlice = absl::Milliseconds(1);
  const absl::Time deadline = SteadyNow() + timeout;
  while (!loan_.AwaitReturn(exchange_ ? absl::ZeroDuration() : kSlice)) {
    if (SteadyNow() > deadline) {
      return Named(absl::DeadlineExceededError("the connection still holds what was sent"));
    }
    // The transport may need a thread to let go, and there is none but this.
    if (exchange_) exchange_->Poll(kSlice);
  }
  return absl::OkStatus();
}

}  // namespace slipstream
