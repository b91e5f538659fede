#include "server/data_plane/pull_call.h"

#include <utility>

#include "common/rpc/status_conversion.h"
#include "common/wire/shard_wire.h"
#include "common/wire/values_codec.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

absl::StatusOr<PullRequest> DecodePull(const grpc::ByteBuffer& message) {
  v1::PullRequest wire;
  // The request carries no values; if any came, they would be an unknown field.
  if (const auto values = DecodeWithValues(message, wire); !values.ok()) return values.status();
  return FromWire(wire);
}

/// Returns how long a reader may take while others wait: one that takes weights no faster than a
/// MiB a second gives way to them.
absl::Duration TimeOfSlowReader(size_t bytes) {
  constexpr double kBytesPerSecond = 1 << 20;
  return absl::Seconds(30) + absl::Seconds(static_cast<double>(bytes) / kBytesPerSecond);
}

/// Returns the changes from the version that the reader holds; null if the values are to be sent.
/// The answer lets go of that version.
VersionChanges::Parts ChangesFor(Answer& answer) {
  if (answer.base == nullptr) return nullptr;
  const Weights base = std::exchange(answer.base, nullptr);
  if (base == answer.weights) return VersionChanges::None(base->values().size());
  return answer.changes->From(*answer.header->base, base->values(), answer.weights->values());
}

}  // namespace

PullCall::PullCall(DataPlaneEngine& engine, const CallGuard::Guards& guards, grpc_call* call,
                   size_t default_chunk_bytes, const grpc::ByteBuffer& request)
    : engine_(engine), chunk_bytes_(default_chunk_bytes), guard_(guards, call, "pull") {
  if (const absl::Status admitted = guard_.caller().Admit(); !admitted.ok()) {
    Finish(ToGrpc(admitted));
    return;
  }
  Ask(request);
}

absl::Status PullCall::MayPull(const PullRequest& request) {
  if (!request.identity.has_value()) return absl::OkStatus();
  const WorkerId worker = request.identity->worker;
  if (request.trains) return guard_.caller().MayBe(worker);
  return guard_.caller().MayBeEither(worker, engine_.AggregatorOf(worker));
}

void PullCall::Ask(const grpc::ByteBuffer& message) {
  const absl::StatusOr<PullRequest> request = DecodePull(message);
  if (!request.ok()) return Finish(ToGrpc(request.status()));
  const absl::Status may_pull = MayPull(*request);
  if (!may_pull.ok()) return Finish(ToGrpc(may_pull));
  if (request->chunk_bytes > 0) chunk_bytes_ = request->chunk_bytes;
  encoding_ = request->weights_encoding;
  wants_trailer_ = request->wants_trailer;
  reader_ = ReaderOf(*request);
  std::optional<Answer> answer = engine_.Pull(*request, this);
  if (answer.has_value() && !answer->refusal.ok()) return OnAnswer(*std::move(answer));
  if (request->identity.has_value()) {
    guard_.caller().NoteMember(request->identity->worker);
  } else {
    guard_.caller().IsGuest();
  }
  if (answer.has_value()) return OnAnswer(*std::move(answer));
  // OnCancel may have come before the call was parked, and found nothing to cancel.
  if (is_cancelled_) GiveUpIfCancelled();
}

void PullCall::OnAnswer(Answer answer) {
  if (!answer.refusal.ok()) return Finish(ToGrpc(answer.refusal));
  // Readers who are not members share a few places, so their time is bounded.
  if (!reader_.has_value() && answer.weights != nullptr) {
    guard_.transfer().EndAfter(TimeOfSlowReader(answer.weights->values().size_bytes()));
  }
  if (answer.base == nullptr) return Send(std::move(answer));
  // This may be the thread that makes updates, and to find the changes takes a while. gRPC goes on
  // with another.
  waiting_.emplace(std::move(answer));
  StartSendInitialMetadata();
}

void PullCall::OnSendInitialMetadataDone(bool ok) {
  if (!waiting_.has_value()) return;  // They went with the first message.
  if (ok) return Send(*std::exchange(waiting_, std::nullopt));
  Finish({grpc::StatusCode::CANCELLED, "the reader is gone"});
}

void PullCall::Send(Answer answer) {
  const VersionChanges::Parts changes = ChangesFor(answer);
  engine_.CountPulled(answer, encoding_, changes);
  answer_.emplace(ChunkedAnswer::Form::kWeights, std::move(answer), chunk_bytes_, encoding_);
  answer_->SendChanges(changes);
  if (wants_trailer_) {
    answer_->SetTrailer([this](const Answer& given) { return engine_.TrailerOf(given); });
  }
  WriteNext();
}

void PullCall::WriteNext() {
  guard_.transfer().Await(message_.Length());
  std::optional<grpc::ByteBuffer> next = answer_->Next();
  if (!next.has_value()) return Finish(grpc::Status::OK);
  message_.Swap(&*next);
  StartWrite(&message_);
}

void PullCall::OnWriteDone(bool ok) {
  if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the reader is gone"});
  WriteNext();
}

void PullCall::OnCancel() {
  is_cancelled_ = true;
  GiveUpIfCancelled();
}

void PullCall::OnDone() {
  if (answer_.has_value() || waiting_.has_value()) {
    // Release the version first: others may wait for its place.
    answer_.reset();
    waiting_.reset();
    message_.Clear();
    engine_.FinishPull(this, reader_);
  }
  delete this;
}

void PullCall::GiveUpIfCancelled() {
  if (engine_.Cancel(this)) Finish({grpc::StatusCode::CANCELLED, "the reader is gone"});
}

}  // namespace slipstream
