#include "worker/client/shard_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log_line.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

constexpr char kExchangeMethod[] = "/slipstream.v1.Shard/Exchange";

}  // namespace

ShardConnection::ShardConnection(std::string address, const ShardOptions& options, ArenaLoan& loan,
                                 CancelSwitch& cancel, std::optional<ShardId> shard)
    : options_(options),
      loan_(loan),
      cancel_(cancel),
      channel_(std::move(address), options.channel, cancel, shard) {}

absl::Status ShardConnection::Open() {
  if (channel_.HasMoved()) Close();
  if (call_ == nullptr) {
    absl::StatusOr<std::unique_ptr<RawCall>> call =
        channel_.Start(kExchangeMethod, options_.WriteDeadline());
    if (!call.ok()) return call.status();
    call_ = *std::move(call);
  }
  return ShareMemory();
}

void ShardConnection::Close() {
  link_.reset();
  call_.reset();
  has_tried_to_share_ = false;
  has_sent_ = false;
}

absl::Status ShardConnection::ShareMemory() {
  const bool may = options_.arena != nullptr && channel_.is_local();
  if (has_tried_to_share_ || has_given_up_sharing_ || !may) return absl::OkStatus();
  has_tried_to_share_ = true;
  absl::StatusOr<std::unique_ptr<SharedLink>> link =
      SharedLink::Attach(*call_, *options_.arena, options_.WriteDeadline(), cancel_);
  const bool must = options_.channel.transport == ShardChannel::Transport::kShm;
  const bool is_refused = absl::IsFailedPrecondition(link.status());
  const std::string reason(link.status().message());
  if (is_refused && must) {
    // Retry: the shard is on this machine and may be able to share memory later.
    return absl::UnavailableError(fmt::format(
        "wire.transport is shm, and no memory can be shared: {}; use auto or unix", reason));
  }
  if (!link.ok() && !is_refused) return SharingFailure(link.status());
  LogLine line("sharing memory with shard", {{"at", channel_.address()}, {"shared", !is_refused}});
  if (is_refused) line.fields.emplace_back("reason", reason);
  std::string told = TextOf(line);
  if (told != std::exchange(told_, told)) Log(spdlog::level::info, line);
  if (link.ok()) link_ = *std::move(link);
  return absl::OkStatus();
}

absl::Status ShardConnection::SharingFailure(const absl::Status& why) {
  if (absl::IsUnavailable(why)) return channel_.Failure(*call_, options_.WriteDeadline());
  const bool may_do_without = options_.channel.transport == ShardChannel::Transport::kAuto;
  const bool is_of_memory =
      absl::IsInternal(why) || absl::IsResourceExhausted(why) || absl::IsFailedPrecondition(why);
  if (!may_do_without || !is_of_memory) return why;
  has_given_up_sharing_ = true;
  LogWarning("sharing no more memory with shard",
             {{"at", channel_.address()}, {"reason", why.message()}});
  return absl::UnavailableError(why.message());
}

absl::StatusOr<grpc::ByteBuffer> ShardConnection::BytesOf(Message message) {
  if (message.encoded.has_value()) {
    LentBytes encoded = *std::move(message.encoded);
    encoded.owner = loan_.Lend(std::move(encoded.owner));
    return EncodePushChunk(message.header, message.begin, std::move(encoded), message.encoding,
                           message.trailer);
  }
  if (link_ != nullptr && !message.values.empty()) {
    const absl::StatusOr<SharedValues> placed =
        link_->Place(message.values, options_.WriteDeadline());
    if (!placed.ok()) return SharingFailure(placed.status());
    return EncodePushChunk(message.header, message.begin, *placed, message.trailer);
  }
  return EncodePushChunk(message.header, message.begin, LentValues{message.values, loan_.Lend()},
                         Encoding::kFp32, message.trailer);
}

absl::Status ShardConnection::Send(Message message) {
  const RawCall::Next next = message.next;
  const absl::StatusOr<grpc::ByteBuffer> bytes = BytesOf(std::move(message));
  if (!bytes.ok()) return bytes.status();
  answers_on_call_ = link_ == nullptr;
  has_sent_ = true;
  if (link_ == nullptr) {
    return call_->Write(*bytes, next, options_.WriteDeadline())
               ? absl::OkStatus()
               : channel_.Failure(*call_, options_.WriteDeadline());
  }
  const absl::Status sent = link_->Send(*bytes);
  return sent.ok() ? sent : SharingFailure(sent);
}

absl::StatusOr<grpc::ByteBuffer> ShardConnection::ReceiveMessage() {
  if (!answers_on_call_) {
    absl::StatusOr<std::optional<grpc::ByteBuffer>> message =
        link_->Receive(options_.AnswerDeadline());
    if (!message.ok()) return SharingFailure(message.status());
    if (message->has_value()) return **std::move(message);
    answers_on_call_ = true;
  }
  grpc::ByteBuffer message;
  if (!call_->Read(message, options_.AnswerDeadline()))
    return channel_.Failure(*call_, options_.WriteDeadline());
  if (link_ != nullptr) call_->ReadAhead();
  return message;
}

absl::StatusOr<ExchangeChunk> ShardConnection::Receive() {
  const absl::StatusOr<grpc::ByteBuffer> message = ReceiveMessage();
  if (!message.ok()) return message.status();
  absl::StatusOr<ExchangeChunk> chunk = DecodeExchangeChunk(*message);
  // This is the peer's fault: no setting on this side can fix it.
  if (!chunk.ok()) {
    return absl::InternalError("answer: " + std::string(chunk.status().message()));
  }
  if (chunk->push.has_value() && link_ != nullptr) link_->OnAnswer();
  return chunk;
}

absl::Status ShardConnection::Take(const ExchangeChunk& chunk, WeightsArrival& weights) {
  if (chunk.shared.has_value()) return CopyShared(chunk, weights);
  return weights.Take(chunk.header, chunk.offset, chunk.values.segments());
}

absl::Status ShardConnection::CopyShared(const ExchangeChunk& chunk, WeightsArrival& weights) {
  if (link_ == nullptr || chunk.values.count() > 0) {
    return absl::InternalError("answer: in shared memory that was not agreed on");
  }
  const absl::StatusOr<std::span<const float>> values =
      link_->Find(*chunk.shared, weights.size(), options_.WriteDeadline());
  if (!values.ok()) return SharingFailure(values.status());
  const size_t chunk_values = options_.chunk_bytes / sizeof(float);
  for (size_t begin = 0; begin < values->size(); begin += chunk_values) {
    const auto piece = values->subspan(begin, std::min(chunk_values, values->size() - begin));
    const absl::Status taken =
        weights.Take(begin == 0 ? chunk.header : std::nullopt, begin, {std::as_bytes(piece)},
                     [&] { return link_->IsIntact(*chunk.shared); });
    if (!taken.ok()) return taken;
  }
  // The weights have arrived; if the stream has ended, the next exchange finds out.
  const grpc::ByteBuffer release = EncodeRequest({.step = SharedMemoryRequest::Step::kRelease});
  (void)link_->Send(release);
  return absl::OkStatus();
}

void ShardConnection::Poll(absl::Duration duration) { call_->Poll(duration); }

}  // namespace slipstream
