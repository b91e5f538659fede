#include "server/listen/caller.h"

#include <grpc/support/alloc.h>

#include <utility>

#include "common/base/limits.h"

namespace slipstream {
namespace {

/// Servers' numbers follow those of workers.
constexpr uint64_t kFirstServer = kWorkersMax;

}  // namespace

Caller::Caller(Connections* connections, grpc_call* call) : connections_(connections), call_(call) {
  if (connections_ == nullptr) return;
  grpc_call_ref(call_);  // A Caller may outlive what gRPC keeps for its call.
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

const PeerProof& Caller::proof() {
  if (!proof_.has_value()) proof_ = ProofOf(call_);
  return *proof_;
}

absl::Status Caller::MayBe(WorkerId worker) { return Noted(MayActAs(proof(), worker)); }

absl::Status Caller::MayBe(ShardId server) { return Noted(MayActAs(proof(), server)); }

absl::Status Caller::MayBeEither(WorkerId worker, ShardId server) {
  if (MayActAs(proof(), server).ok()) return absl::OkStatus();
  return MayBe(worker);
}

absl::Status Caller::Noted(absl::Status status) {
  if (status.ok() || connections_ == nullptr) return status;
  Audit("refused", std::string(status.message()));
  connections_->audit().Note(*TakeAudit());
  return status;
}

PeerName Caller::Peer() const {
  char* const peer = grpc_call_get_peer(call_);
  PeerName name = PeerNameOf(peer);
  gpr_free(peer);
  return name;
}

std::string Caller::Address() const { return Peer().first; }

std::string Caller::Who() {
  const PeerName name = Peer();
  const std::string place = name.first.empty() ? "this-machine" : TextOf(name);
  const std::string identity = proof().Text();
  return identity == "-" ? place : identity + " at " + place;
}

void Caller::Audit(std::string event, std::string reason) {
  const PeerName name = Peer();
  audit_ = {.event = std::move(event),
            .identity = proof().Text(),
            .peer = name.first.empty() ? "this-machine" : TextOf(name),
            .reason = std::move(reason)};
}

void Caller::Introduce(Connections::Who who, uint64_t member) {
  if (connection_ != 0) connections_->Introduce(*this, who, member);
}

void Caller::NoteMember(WorkerId worker) {
  Introduce(Connections::Who::kMember, Value(worker));
  Took(0);
}

void Caller::NoteMember(ShardId server) {
  Introduce(Connections::Who::kMember, kFirstServer + Value(server));
  Took(0);
}

void Caller::Took(size_t bytes) {
  if (connection_ != 0) connections_->Take(connection_, bytes);
}

void Caller::IsGuest() { Introduce(Connections::Who::kGuest, 0); }

}  // namespace slipstream
