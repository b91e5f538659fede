#include "server/data_plane/initialize_call.h"

#include <utility>

#include "common/kernels/copy_values.h"
#include "common/kernels/finite.h"
#include "common/rpc/status_conversion.h"
#include "common/wire/values_codec.h"
#include "proto/shard.pb.h"

namespace slipstream {

InitializeCall::InitializeCall(ShardEngine& engine, const CallGuard::Guards& guards,
                               grpc_call* call, grpc::ByteBuffer* response)
    : engine_(engine), response_(response), guard_(guards, call, "initialization") {
  if (const absl::Status admitted = guard_.caller().Admit(); !admitted.ok()) {
    Finish(ToGrpc(admitted));
    return;
  }
  guard_.transfer().Await(0);
  StartRead(&read_);
}

void InitializeCall::OnReadDone(bool ok) {
  if (!ok) {
    return Finish({grpc::StatusCode::INVALID_ARGUMENT, "the stream ended within the weights"});
  }
  absl::StatusOr<InitializeChunk> chunk = DecodeInitializeChunk(read_);
  if (!chunk.ok()) return Finish(ToGrpc(chunk.status()));
  if (absl::Status taken = Take(*chunk); !taken.ok()) return Finish(ToGrpc(taken));
  guard_.caller().Took(read_.Length());
  guard_.transfer().Await(read_.Length());
  if (received_ < header_->count) return StartRead(&read_);
  const absl::Status finished = engine_.FinishInitialize(*header_, std::move(weights_));
  if (!finished.ok()) return Finish(ToGrpc(finished));
  *response_ = EncodeWithValues(v1::InitializeReply(), {});
  Finish(grpc::Status::OK);
}

absl::Status InitializeCall::Take(const InitializeChunk& chunk) {
  if (chunk.header.has_value()) {
    if (header_.has_value()) return absl::InvalidArgumentError("a second header");
    if (absl::Status may_be = guard_.caller().MayBe(chunk.header->identity.worker); !may_be.ok()) {
      return may_be;
    }
    absl::StatusOr<std::shared_ptr<FloatBuffer>> begun = engine_.BeginInitialize(*chunk.header);
    if (!begun.ok()) return begun.status();
    header_ = chunk.header;
    weights_ = *std::move(begun);
    guard_.IsOf({.worker = header_->identity.worker});
  }
  if (!header_.has_value()) return absl::InvalidArgumentError("values came without a header");
  const uint64_t count = chunk.values.count();
  if (chunk.offset != received_ || count > header_->count - received_) {
    return absl::InvalidArgumentError("LENGTH_MISMATCH: the chunks do not add up");
  }
  if (!AllFinite(chunk.values.segments())) {
    return absl::InvalidArgumentError("NONFINITE: the weights have a NaN or an infinity");
  }
  CopyValues(chunk.values.segments(), weights_->values().subspan(received_, count));
  received_ += count;
  return absl::OkStatus();
}

}  // namespace slipstream
