#include "server/data_plane/exchange_pipe.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/status_conversion.h"

namespace slipstream {
namespace {

grpc::Status Gone() { return {grpc::StatusCode::CANCELLED, "the worker is gone"}; }

}  // namespace

void ExchangePipe::Begin(const grpc::Status& admitted) {
  self_ = shared_from_this();
  if (!admitted.ok()) return Finish(admitted);
  // Send the metadata now: the first message may be held back, and the metadata with it.
  StartSendInitialMetadata();
  StartRead(&read_);
}

void ExchangePipe::OnReadDone(bool ok) {
  if (shared_.is_attached()) return OnStreamOver(ok ? Over::kSpoke : Over::kGone);
  if (!ok) return End(grpc::Status::OK);  // The client has ended the stream, or is gone.
  // Do not keep the message until the next one comes: small pushes are one message.
  grpc::ByteBuffer message;
  message.Swap(&read_);
  OnMessage(message);
}

void ExchangePipe::OnReadable() {
  const absl::StatusOr<std::optional<grpc::ByteBuffer>> message = shared_.Receive();
  if (absl::IsUnavailable(message.status())) return End(Gone());
  if (!message.ok()) return End(ToGrpc(message.status()));
  if (!message->has_value()) return Read(awake_until_);
  OnMessage(**message);
}

void ExchangePipe::Read(std::chrono::steady_clock::time_point awake_until) {
  answers_on_grpc_ = false;
  awake_until_ = awake_until;
  if (!shared_.is_attached()) return StartRead(&read_);
  if (!std::exchange(speaks_locally_, true)) StartRead(&read_);  // This read ends with the stream.
  socket_.Arm(awake_until);
  Wait();
}

void ExchangePipe::Write(grpc::ByteBuffer&& message, grpc::WriteOptions options, bool has_values) {
  const bool is_for_grpc = has_values || message.Length() > SharedMemoryChannel::kAnswerBytesMax;
  if (speaks_locally_ && !answers_on_grpc_) {
    const absl::Status sent = is_for_grpc ? shared_.SendOnStream() : shared_.Send(message);
    if (!sent.ok()) return End({grpc::StatusCode::CANCELLED, std::string(sent.message())});
    if (!is_for_grpc) return OnWritten(message.Length());
    answers_on_grpc_ = true;
  }
  written_.Swap(&message);
  StartWrite(&written_, options);
}

void ExchangePipe::OnWriteDone(bool ok) {
  if (!ok) return End(Gone());
  const size_t bytes = written_.Length();
  written_.Clear();  // Releases the sent version now, not with the next answer.
  OnWritten(bytes);
}

void ExchangePipe::Wait() {
  // The stream may have ended before there was a wait to stop.
  if (over_ != Over::kNo) EndIfIdle();
}

void ExchangePipe::End(const grpc::Status& status) {
  OnEnd();
  Finish(status);
}

SharedMemoryReply ExchangePipe::Attach() {
  SharedMemoryReply reply = shared_.Attach();
  if (!reply.refusal.empty()) return reply;
  if (!socket_.Bind(shared_.socket(), weak_from_this())) {
    shared_.Detach();
    return {.socket = {}, .refusal = "the system lets no more sockets be watched"};
  }
  return reply;
}

void ExchangePipe::OnStreamOver(Over how) {
  over_ = how;
  EndIfIdle();
}

void ExchangePipe::EndIfIdle() {
  if (!StopWaiting() && !socket_.Disarm()) return;
  if (over_ != Over::kSpoke) return End(grpc::Status::OK);
  End({grpc::StatusCode::INVALID_ARGUMENT, "messages go over the local socket by now"});
}

void ExchangePipe::OnDone() {
  OnGone();
  socket_.Unbind();
  self_.reset();  // A callback that still runs keeps the object until then.
}

}  // namespace slipstream
