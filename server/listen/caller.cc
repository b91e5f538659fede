#include "server/listen/caller.h"

#include <grpc/support/alloc.h>

#include "common/base/limits.h"

namespace slipstream {
namespace {

/// Numbers of servers follow those of workers.
constexpr uint64_t kFirstServer = kWorkersMax;

}  // namespace

Caller::Caller(Connections* connections, grpc_call* call) : connections_(connections), call_(call) {
  if (connections_ == nullptr) return;
  grpc_call_ref(call_);  // A caller may outlive what gRPC keeps for its call.
  char* const peer = grpc_call_get_peer(call);
  connection_ = connections_->Enter(*this, peer);
  gpr_free(peer);
}

Caller::~Caller() {
  if (connection_ != 0) connections_->Leave(*this);
  if (connections_ != nullptr) grpc_call_unref(call_);
}

absl::Status Caller::Admit() const {
  if (connection_ == 0 || connections_->MayCall(connection_)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "too many calls are open on a connection that no member of the run has used");
}

void Caller::Introduce(Connections::Who who, uint64_t member) {
  if (connection_ != 0) connections_->Introduce(*this, who, member);
}

void Caller::IsMember(WorkerId worker) { Introduce(Connections::Who::kMember, Value(worker)); }

void Caller::IsMember(ShardId server) {
  Introduce(Connections::Who::kMember, kFirstServer + Value(server));
}

void Caller::IsGuest() { Introduce(Connections::Who::kGuest, 0); }

}  // namespace slipstream
