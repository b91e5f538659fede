#include "server/data_plane/exchange_call.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/rpc/status_conversion.h"
#include "common/wire/chunk_wire.h"

namespace slipstream {
namespace {

/// Returns how long an honest worker on a busy machine takes at most to copy so many bytes.
absl::Duration TimeToCopy(size_t bytes) {
  constexpr double kBytesPerSecond = 64 << 20;
  return absl::Seconds(static_cast<double>(bytes) / kBytesPerSecond);
}

}  // namespace

ExchangeCall* ExchangeCall::Start(const Place& place, grpc_call* call, bool is_local) {
  auto started = std::make_shared<ExchangeCall>(place, call, is_local);
  const absl::Status admitted = started->guard_.caller().Admit();
  started->Begin(ToGrpc(admitted));
  return started.get();
}

ExchangeCall::ExchangeCall(const Place& place, grpc_call* call, bool is_local)
    : ExchangePipe(place.memory_use, place.sockets),
      place_(place),
      is_local_(is_local),
      guard_(place.guards, call, "exchange"),
      receiver_(place.engine, &guard_, &shared()),
      chunk_bytes_(place.default_chunk_bytes) {}

void ExchangeCall::OnMessage(const grpc::ByteBuffer& message) {
  absl::StatusOr<PushReceiver::Outcome> outcome = receiver_.OnMessage(message);
  if (!outcome.ok()) return End(ToGrpc(outcome.status()));
  Handle(*std::move(outcome));
}

void ExchangeCall::Handle(PushReceiver::Outcome outcome) {
  if (auto* beside = std::get_if<PushFraming::Beside>(&outcome)) return OnRequest(beside->request);
  wait_->End();
  if (auto* complete = std::get_if<PushFraming::Complete>(&outcome)) {
    guard_.transfer().Rest();
    const uint32_t asked = complete->push.header().chunk_bytes;
    chunk_bytes_ = asked > 0 ? asked : place_.default_chunk_bytes;
    encoding_ = complete->push.header().weights_encoding;
    std::optional<Answer> answer = place_.engine.FinishPush(std::move(complete->push), this);
    if (answer.has_value()) return OnAnswer(*std::move(answer));
    return Wait();
  }
  if (auto* refused = std::get_if<PushFraming::Refused>(&outcome)) {
    guard_.transfer().Rest();
    ends_after_answer_ = refused->ends_stream;
    std::optional<Answer> answer = place_.engine.Refuse(std::move(refused->reply), this);
    if (answer.has_value()) return OnAnswer(*std::move(answer));
    return Wait();
  }
  const auto& needed = std::get<PushFraming::NeedMore>(outcome);
  if (needed.awaits_trailer) {
    guard_.transfer().Rest();
  } else {
    guard_.transfer().Await(needed.taken_bytes);
  }
  ReadNext(chunk_wait_);
}

void ExchangeCall::OnRequest(const SharedMemoryRequest& request) {
  switch (request.step) {
    case SharedMemoryRequest::Step::kOpen:
      // A worker on another machine could not use it.
      if (!is_local_) return Reply({.socket = {}, .refusal = "the worker came over the network"});
      return Reply(shared().Open());
    case SharedMemoryRequest::Step::kAttach:
      return Reply(ShareMemory());
    case SharedMemoryRequest::Step::kRelease:
      place_.memory_use.Release(this);
      return Read(wait_->awake_until());
  }
}

SharedMemoryReply ExchangeCall::ShareMemory() {
  SharedMemoryReply reply = Attach();
  if (reply.refusal.empty()) place_.engine.ShareVersions();
  return reply;
}

void ExchangeCall::Reply(const SharedMemoryReply& reply) {
  Write(EncodeReply(reply), {}, /*has_values=*/false);
}

std::optional<SharedWeights> ExchangeCall::Share(const Answer& answer) {
  if (answer.weights == nullptr) return std::nullopt;
  if (encoding_ != Encoding::kFp32) return std::nullopt;  // Shared weights are not encoded.
  std::optional<SharedWeights> shown = shared().Show(answer.weights);
  if (shown.has_value()) {
    const size_t bytes = answer.weights->values().size_bytes();
    place_.memory_use.Pin(this, answer.weights,
                          place_.engine.now() + std::max(place_.lease, TimeToCopy(bytes)));
  }
  return shown;
}

void ExchangeCall::OnAnswer(Answer answer) {
  const auto self = shared_from_this();  // The engine does not keep the call alive.
  if (!answer.refusal.ok()) return End(ToGrpc(answer.refusal));
  const std::optional<SharedWeights> shared = Share(answer);
  place_.engine.CountPulled(answer, shared.has_value() ? Encoding::kFp32 : encoding_, nullptr);
  answer_.emplace(ChunkedAnswer::Form::kExchange, std::move(answer), chunk_bytes_, encoding_,
                  shared);
  OnWritten(0);
}

void ExchangeCall::OnWritten(size_t bytes) {
  guard_.transfer().Await(bytes);
  std::optional<grpc::ByteBuffer> next;
  if (answer_.has_value()) next = answer_->Next();
  if (next.has_value()) {
    const bool has_values = answer_->has_values();
    const grpc::WriteOptions options = answer_->write_options();
    if (!has_values) answer_.reset();  // `next` is all of it. Do not keep its version.
    return Write(*std::move(next), options, has_values);
  }
  guard_.transfer().Rest();
  answer_.reset();
  if (ends_after_answer_) {
    return End({grpc::StatusCode::INVALID_ARGUMENT, "the stream of chunks was broken"});
  }
  ReadNext(push_wait_);
}

void ExchangeCall::ReadNext(AwakeWait& wait) {
  wait_ = &wait;
  wait.Begin();
  Read(wait.awake_until());
}

void ExchangeCall::OnGone() {
  guard_.transfer().Rest();
  place_.memory_use.Release(this);
  place_.engine.OnCallGone(this);
}

}  // namespace slipstream
