#include "server/service/exchange_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/rpc/status_conversion.h"
#include "common/wire/chunk_wire.h"

namespace slipstream {
namespace {

/// What an honest worker takes at most, on a machine that has other things to do.
absl::Duration TimeToCopy(size_t bytes) {
  constexpr double kBytesPerSecond = 64 << 20;
  return absl::Seconds(static_cast<double>(bytes) / kBytesPerSecond);
}

grpc::Status Gone() { return {grpc::StatusCode::CANCELLED, "the worker is gone"}; }

}  // namespace

ExchangeCall* ExchangeCall::Start(const Place& place, grpc_call* call, bool is_local) {
  auto started = std::make_shared<ExchangeCall>(place, call, is_local);
  started->self_ = started;
  return started.get();
}

ExchangeCall::ExchangeCall(const Place& place, grpc_call* call, bool is_local)
    : place_(place),
      is_local_(is_local),
      socket_(place.sockets),
      shared_(place.room),
      latest_(place.exchanges, call),
      receiver_(place.engine, &latest_, &shared_),
      chunk_bytes_(place.default_chunk_bytes),
      transfer_(place.transfers, call, "exchange") {
  // Not with the first message, which may be held back, and the metadata with it.
  StartSendInitialMetadata();
  StartRead(&read_);
}

void ExchangeCall::OnReadDone(bool ok) {
  if (shared_.is_attached()) return OnStreamOver(ok ? Over::kSpoke : Over::kGone);
  if (!ok) {  // The client has ended the stream, or is gone.
    receiver_.Abandon();
    return Finish(grpc::Status::OK);
  }
  // Not kept until the next one comes: small pushes are one message.
  grpc::ByteBuffer message;
  message.Swap(&read_);
  OnMessage(message);
}

void ExchangeCall::OnReadable() {
  const absl::StatusOr<std::optional<grpc::ByteBuffer>> message = shared_.Receive();
  if (absl::IsUnavailable(message.status())) return End(Gone());
  if (!message.ok()) return End(ToGrpc(message.status()));
  if (!message->has_value()) return ReadNext();
  OnMessage(**message);
}

void ExchangeCall::OnMessage(const grpc::ByteBuffer& message) {
  absl::StatusOr<PushReceiver::Outcome> outcome = receiver_.OnMessage(message);
  if (!outcome.ok()) return End(ToGrpc(outcome.status()));
  Handle(*std::move(outcome));
}

void ExchangeCall::Handle(PushReceiver::Outcome outcome) {
  if (auto* beside = std::get_if<PushReceiver::Beside>(&outcome)) return OnRequest(beside->request);
  wait_->End();
  if (auto* complete = std::get_if<PushReceiver::Complete>(&outcome)) {
    transfer_.Rest();
    const uint32_t asked = complete->push.header().chunk_bytes;
    chunk_bytes_ = asked > 0 ? asked : place_.default_chunk_bytes;
    encoding_ = complete->push.header().weights_encoding;
    std::optional<Answer> answer = place_.engine.FinishPush(std::move(complete->push), this);
    if (answer.has_value()) return OnAnswer(*std::move(answer));
    // It may have been over before the call was parked.
    if (over_ != Over::kNo) EndIfIdle();
    return;
  }
  if (auto* refused = std::get_if<PushReceiver::Refused>(&outcome)) {
    ends_after_answer_ = refused->ends_stream;
    return OnAnswer({.push = std::move(refused->reply)});
  }
  const auto& needed = std::get<PushReceiver::NeedMore>(outcome);
  if (needed.awaits_seal) {
    transfer_.Rest();
  } else {
    transfer_.Await(needed.taken_bytes);
  }
  wait_ = &chunk_wait_;
  wait_->Begin();
  ReadNext();
}

void ExchangeCall::OnRequest(const SharedMemoryRequest& request) {
  switch (request.step) {
    case SharedMemoryRequest::Step::kOpen:
      // Others could not use it.
      if (!is_local_) return Reply({.socket = {}, .refusal = "the worker came over the network"});
      return Reply(shared_.Open());
    case SharedMemoryRequest::Step::kAttach:
      return Reply(Attach());
    case SharedMemoryRequest::Step::kRelease:
      place_.room.Release(this);
      return ReadNext();
  }
}

SharedMemoryReply ExchangeCall::Attach() {
  SharedMemoryReply reply = shared_.Attach();
  if (!reply.refusal.empty()) return reply;
  if (!socket_.Bind(shared_.socket(), weak_from_this())) {
    shared_.Detach();
    return {.socket = {}, .refusal = "the system lets no more sockets be watched"};
  }
  place_.engine.ShareVersions();
  return reply;
}

void ExchangeCall::Reply(const SharedMemoryReply& reply) {
  written_ = EncodeReply(reply);
  Write({});
}

std::optional<SharedWeights> ExchangeCall::Share(const Answer& answer) {
  if (!answer.weights.has_value() || answer.weights->weights == nullptr) return std::nullopt;
  if (encoding_ != Encoding::kFp32) return std::nullopt;  // What is shared is not encoded.
  std::optional<SharedWeights> shared = shared_.Show(answer.weights->weights);
  if (shared.has_value()) {
    const size_t bytes = answer.weights->weights->values().size_bytes();
    place_.room.Pin(this, answer.weights->weights,
                    place_.engine.now() + std::max(place_.lease, TimeToCopy(bytes)));
  }
  return shared;
}

void ExchangeCall::OnAnswer(Answer answer) {
  const std::shared_ptr<ExchangeCall> self = shared_from_this();  // The engine keeps nothing.
  const std::optional<SharedWeights> shared = Share(answer);
  answer_.emplace(ChunkedAnswer::Form::kExchange, std::move(answer), chunk_bytes_, encoding_,
                  shared);
  WriteNext();
}

void ExchangeCall::WriteNext() {
  transfer_.Await(written_.Length());
  written_.Clear();  // What was sent lets go of its version now, not with the next answer.
  std::optional<grpc::ByteBuffer> next;
  if (answer_.has_value()) next = answer_->Next();
  if (next.has_value()) {
    written_.Swap(&*next);
    return Write(answer_->write_options());
  }
  transfer_.Rest();
  answer_.reset();
  answers_on_stream_ = false;
  if (ends_after_answer_) {
    return End({grpc::StatusCode::INVALID_ARGUMENT, "the stream of chunks was broken"});
  }
  wait_ = &push_wait_;
  wait_->Begin();
  ReadNext();
}

void ExchangeCall::Write(grpc::WriteOptions options) {
  if (!speaks_locally_ || answers_on_stream_) return StartWrite(&written_, options);
  const bool has_values = answer_.has_value() && answer_->has_values();
  answers_on_stream_ = has_values || written_.Length() > SharedPath::kAnswerBytesMax;
  if (!answers_on_stream_) answer_.reset();  // All of it, and its version is not kept by it.
  const absl::Status sent = answers_on_stream_ ? shared_.SendOnStream() : shared_.Send(written_);
  if (!sent.ok()) return End({grpc::StatusCode::CANCELLED, std::string(sent.message())});
  if (answers_on_stream_) return StartWrite(&written_, options);
  WriteNext();
}

void ExchangeCall::OnWriteDone(bool ok) {
  if (!ok) return End(Gone());
  WriteNext();
}

void ExchangeCall::ReadNext() {
  if (!shared_.is_attached()) return StartRead(&read_);
  if (!std::exchange(speaks_locally_, true)) StartRead(&read_);  // Ends with the stream.
  socket_.Arm(wait_->awake_until());
  if (over_ != Over::kNo) EndIfIdle();
}

void ExchangeCall::End(const grpc::Status& status) {
  receiver_.Abandon();
  Finish(status);
}

void ExchangeCall::OnCancel() { OnStreamOver(Over::kGone); }

void ExchangeCall::OnStreamOver(Over how) {
  over_ = how;
  EndIfIdle();
}

void ExchangeCall::EndIfIdle() {
  if (!place_.engine.Cancel(this) && !socket_.Disarm()) return;
  if (over_ != Over::kSpoke) return End(grpc::Status::OK);
  End({grpc::StatusCode::INVALID_ARGUMENT, "messages go over the local socket by now"});
}

void ExchangeCall::OnDone() {
  transfer_.Rest();
  socket_.Unbind();
  place_.room.Release(this);
  self_.reset();  // Whoever is still called keeps it until then.
}

}  // namespace slipstream
