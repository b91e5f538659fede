#ifndef SLIPSTREAM_SERVER_LISTEN_CALLER_H_
#define SLIPSTREAM_SERVER_LISTEN_CALLER_H_

#include <grpc/grpc.h>

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/listen/connections.h"
#include "server/listen/peer_proof.h"

namespace slipstream {

/// Who makes a call; a member of the call. A call whose caller has not said in time who it is, is
/// ended with UNAVAILABLE; with who it is the caller introduces its connection, too.
///
/// The service finds out who a caller is, by what the messages name and what the run knows of that.
/// Over TLS a caller may only be whom its certificate names: before a service acts on a message, it
/// asks MayBe.
///
/// Thread-safe: guarded by the mutex of the connections; but MayBe, CertifiedWorker and Audit
/// belong to whoever handles the call's messages, one at a time.
class Caller {
 public:
  /// `connections` may be null: nothing is bounded then.
  Caller(Connections* connections, grpc_call* call);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// RESOURCE_EXHAUSTED if the connection has too many calls open for one that is no member's: then
  /// the call is to be refused.
  absl::Status Admit() const;

  /// OK if the caller has proved that it is this member, or came where nobody has to prove
  /// anything: in plaintext, or over the local socket. PERMISSION_DENIED, noted in the audit log,
  /// otherwise.
  absl::Status MayBe(WorkerId worker);
  absl::Status MayBe(ShardId server);

  /// The worker that the caller's certificate names, if it names one.
  std::optional<WorkerId> CertifiedWorker() { return proof().worker(); }

  /// Notes for the audit log what the caller has done; `event` as there. For a service that holds a
  /// lock, under which nothing is written: it takes the note, and writes it later.
  void Audit(std::string event, std::string reason);
  std::optional<AuditLog::Event> TakeAudit() { return std::exchange(audit_, std::nullopt); }

  /// The caller was found to be a member of the run: a worker, or the server of a shard.
  void IsMember(WorkerId worker);
  void IsMember(ShardId server);

  /// The caller may be served although it is no member.
  void IsGuest();

 private:
  friend class Connections;

  void Introduce(Connections::Who who, uint64_t member);
  const PeerProof& proof();
  absl::Status Noted(absl::Status status);

  Connections* const connections_;
  grpc_call* const call_;
  uint64_t connection_ = 0;         // Its number; 0 where it is unknown.
  std::optional<PeerProof> proof_;  // Once somebody has asked.
  std::optional<AuditLog::Event> audit_;

  // Guarded by the mutex of the connections.
  absl::Time began_;
  std::optional<std::list<Caller*>::iterator> silent_;  // Its place there, until it has spoken.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_CALLER_H_
