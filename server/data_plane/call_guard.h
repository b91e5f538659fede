#ifndef SLIPSTREAM_SERVER_DATA_PLANE_CALL_GUARD_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_CALL_GUARD_H_

#include <optional>
#include <string>
#include <utility>

#include "server/data_plane/transfer_watch.h"
#include "server/listen/caller.h"
#include "server/listen/latest_calls.h"

namespace slipstream {

/// Bounds what one call of the data plane may cost; a member of the call's object. It knows who
/// calls, leaves each slot of a member one call of a kind, and ends the call if its peer stalls.
///
/// As thread-safe as its parts.
class CallGuard {
 public:
  /// The objects that a service has for all its calls of one kind. They must outlive these.
  struct Guards {
    Connections* connections = nullptr;  // Null if nothing bounds them.
    TransferWatch& transfers;
    LatestCalls* latest = nullptr;  // Null if a member may have several such calls.
  };

  /// `kind` is for people, such as "push".
  CallGuard(const Guards& guards, grpc_call* call, std::string kind)
      : caller_(guards.connections, call), transfer_(guards.transfers, call, std::move(kind)) {
    if (guards.latest != nullptr) latest_.emplace(*guards.latest, call);
  }

  Caller& caller() { return caller_; }
  TransferWatch::Transfer& transfer() { return transfer_; }

  /// Notes that the call brings something from this sender, which was found to be a member.
  void IsOf(const LatestCalls::Sender& sender) {
    caller_.NoteMember(sender.worker);
    if (latest_.has_value()) latest_->Claim(sender);
  }

 private:
  Caller caller_;
  std::optional<LatestCalls::Entry> latest_;
  TransferWatch::Transfer transfer_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_CALL_GUARD_H_
