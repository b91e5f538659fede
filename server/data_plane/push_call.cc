#include "server/data_plane/push_call.h"

#include <utility>

#include "common/rpc/status_conversion.h"
#include "common/wire/shard_wire.h"
#include "common/wire/values_codec.h"

namespace slipstream {

PushCall::PushCall(ShardEngine& engine, const CallGuard::Guards& guards, grpc_call* call,
                   grpc::ByteBuffer* response)
    : engine_(engine),
      response_(response),
      guard_(guards, call, "push"),
      receiver_(engine, &guard_) {
  if (const absl::Status admitted = guard_.caller().Admit(); !admitted.ok()) {
    Finish(ToGrpc(admitted));
    return;
  }
  guard_.transfer().Await(0);
  StartRead(&read_);
}

void PushCall::OnReadDone(bool ok) {
  if (!ok) {
    return Finish(
        {grpc::StatusCode::INVALID_ARGUMENT, "the stream ended without " + receiver_.Abandon()});
  }
  absl::StatusOr<PushReceiver::Outcome> outcome = receiver_.OnMessage(read_);
  if (!outcome.ok()) return Finish(ToGrpc(outcome.status()));
  if (const auto* needed = std::get_if<PushFraming::NeedMore>(&*outcome)) {
    guard_.transfer().Await(needed->taken_bytes);
    return StartRead(&read_);
  }
  guard_.transfer().Rest();
  std::optional<Answer> answer;
  if (auto* refused = std::get_if<PushFraming::Refused>(&*outcome)) {
    answer = engine_.Refuse(std::move(refused->reply), this);
  } else {
    auto& complete = std::get<PushFraming::Complete>(*outcome);
    answer = engine_.FinishPush(std::move(complete.push), this);
  }
  if (answer.has_value()) return OnAnswer(*std::move(answer));
  // OnCancel may have come before the call was parked, and found nothing to cancel.
  if (is_cancelled_) GiveUpIfCancelled();
}

void PushCall::OnAnswer(Answer answer) {
  if (!answer.refusal.ok()) return Finish(ToGrpc(answer.refusal));
  *response_ = EncodeWithValues(ToWire(*answer.push), {});
  Finish(grpc::Status::OK);
}

void PushCall::OnCancel() {
  is_cancelled_ = true;
  GiveUpIfCancelled();
}

void PushCall::GiveUpIfCancelled() {
  if (engine_.Cancel(this)) Finish({grpc::StatusCode::CANCELLED, "the worker is gone"});
}

}  // namespace slipstream
