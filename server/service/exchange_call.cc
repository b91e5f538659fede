#include "server/service/exchange_call.h"

#include <utility>

#include "common/rpc/status_conversion.h"
#include "common/wire/chunk_wire.h"

namespace slipstream {

ExchangeCall::ExchangeCall(ShardEngine& engine, TransferWatch& watch, grpc_call* call,
                           SharedMemoryRoom& room, bool is_local, size_t default_chunk_bytes,
                           absl::Duration lease)
    : engine_(engine),
      room_(room),
      is_local_(is_local),
      default_chunk_bytes_(default_chunk_bytes),
      lease_(lease),
      shared_(room),
      receiver_(engine, &shared_),
      chunk_bytes_(default_chunk_bytes),
      transfer_(watch, call, "exchange") {
  // Not with the first message, which may be held back, and the metadata with it.
  StartSendInitialMetadata();
  StartRead(&read_);
}

void ExchangeCall::OnReadDone(bool ok) {
  if (!ok) {  // The client has ended the stream, or is gone.
    receiver_.Abandon();
    return Finish(grpc::Status::OK);
  }
  absl::StatusOr<PushReceiver::Outcome> outcome = receiver_.OnMessage(read_);
  if (!outcome.ok()) return Finish(ToGrpc(outcome.status()));
  Handle(*std::move(outcome));
}

void ExchangeCall::Handle(PushReceiver::Outcome outcome) {
  if (auto* beside = std::get_if<PushReceiver::Beside>(&outcome)) return OnRequest(beside->request);
  if (auto* complete = std::get_if<PushReceiver::Complete>(&outcome)) {
    transfer_.Rest();
    const uint32_t asked = complete->push.header().chunk_bytes;
    chunk_bytes_ = asked > 0 ? asked : default_chunk_bytes_;
    encoding_ = complete->push.header().weights_encoding;
    std::optional<Answer> answer = engine_.FinishPush(std::move(complete->push), this);
    if (answer.has_value()) return OnAnswer(*std::move(answer));
    // OnCancel may have come before the call was parked, and found nothing to cancel.
    if (is_cancelled_) GiveUpIfCancelled();
    return;
  }
  if (auto* refused = std::get_if<PushReceiver::Refused>(&outcome)) {
    ends_after_answer_ = refused->ends_stream;
    return OnAnswer({.push = std::move(refused->reply)});
  }
  transfer_.Await(std::get<PushReceiver::NeedMore>(outcome).taken_bytes);
  StartRead(&read_);
}

void ExchangeCall::OnRequest(const SharedMemoryRequest& request) {
  switch (request.step) {
    case SharedMemoryRequest::Step::kOpen:
      // Others could not use it, and must not take its room.
      if (!is_local_) return Reply({.socket = {}, .refusal = "the worker came over the network"});
      return Reply(shared_.Open(request.window_bytes));
    case SharedMemoryRequest::Step::kAttach: {
      const SharedMemoryReply reply = shared_.Attach();
      if (reply.refusal.empty()) engine_.ShareVersions();
      return Reply(reply);
    }
    case SharedMemoryRequest::Step::kRelease:
      room_.Release(this);
      return StartRead(&read_);
  }
}

void ExchangeCall::Reply(const SharedMemoryReply& reply) {
  written_ = EncodeReply(reply);
  StartWrite(&written_);
}

std::optional<SharedWeights> ExchangeCall::Share(const Answer& answer) {
  if (!answer.weights.has_value() || answer.weights->weights == nullptr) return std::nullopt;
  if (encoding_ != Encoding::kFp32) return std::nullopt;  // What is shared is not encoded.
  std::optional<SharedWeights> shared = shared_.Show(answer.weights->weights);
  if (shared.has_value()) room_.Pin(this, answer.weights->weights, engine_.now() + lease_);
  return shared;
}

void ExchangeCall::OnAnswer(Answer answer) {
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
    return StartWrite(&written_, answer_->write_options());
  }
  transfer_.Rest();
  answer_.reset();
  if (ends_after_answer_) {
    return Finish({grpc::StatusCode::INVALID_ARGUMENT, "the stream of chunks was broken"});
  }
  StartRead(&read_);
}

void ExchangeCall::OnWriteDone(bool ok) {
  if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the worker is gone"});
  WriteNext();
}

void ExchangeCall::OnCancel() {
  is_cancelled_ = true;
  GiveUpIfCancelled();
}

void ExchangeCall::OnDone() {
  room_.Release(this);
  delete this;
}

void ExchangeCall::GiveUpIfCancelled() {
  if (engine_.Cancel(this)) Finish({grpc::StatusCode::CANCELLED, "the worker is gone"});
}

}  // namespace slipstream
