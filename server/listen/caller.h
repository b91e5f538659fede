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
#include "server/listen/peer_name.h"
#include "server/listen/peer_proof.h"

namespace slipstream {

/// Knows who makes a call; a member of the call's object. A call whose caller does not say in time
/// who it is, is ended with UNAVAILABLE. Once the caller has said so, its connection is known, too.
///
/// The service finds out who a caller is, from the names in its messages and from what the run
/// knows about these. Over TLS a caller may only be the member that its certificate names: before a
/// service acts on a message, it asks MayBe.
///
/// Thread-safe: guarded by the mutex of the connections. But MayBe, CertifiedWorker and Audit are
/// only for the code that handles the call's messages, one at a time.
class Caller {
 public:
  /// `connections` may be null; then nothing is bounded.
  Caller(Connections* connections, grpc_call* call);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// Returns RESOURCE_EXHAUSTED, and the call is to be refused, if its connection is not a member's
  /// and has too many calls open.
  absl::Status Admit() const;

  /// Returns OK if the caller has proved that it is this member, or came where nobody has to prove
  /// anything: in plaintext, or over the local socket. Otherwise returns PERMISSION_DENIED and
  /// notes that in the audit log.
  absl::Status MayBe(WorkerId worker);
  absl::Status MayBe(ShardId server);

  /// Does the same for a caller that may be one of two members.
  absl::Status MayBeEither(WorkerId worker, ShardId server);

  /// Returns the peer's address, without its port; empty if it is on this machine and came through
  /// the local socket. For comparing alone.
  std::string Address() const;

  /// Returns the caller's certificate or token, if it has one, and address, for people.
  std::string Who();

  /// Returns the worker that the caller's certificate names, if it names one.
  std::optional<WorkerId> CertifiedWorker() { return proof().worker(); }

  /// Notes for the audit log what the caller has done; `event` is AuditLog::Event's. Nothing is
  /// written under a service's lock: the service takes the note with TakeAudit and writes it later.
  void Audit(std::string event, std::string reason);
  std::optional<AuditLog::Event> TakeAudit() { return std::exchange(audit_, std::nullopt); }

  /// Note that the caller was found to be a member of the run: a worker, or the server of a shard.
  void NoteMember(WorkerId worker);
  void NoteMember(ShardId server);

  /// Notes that the caller may be served although it is not a member.
  void IsGuest();

  /// Notes that a message of so many bytes was taken. That counts on a member's connection, where
  /// all other bytes have a bound. IsMember does so too, for a small message.
  void Took(size_t bytes);

 private:
  friend class Connections;

  void Introduce(Connections::Who who, uint64_t member);
  PeerName Peer() const;
  const PeerProof& proof();
  absl::Status Noted(absl::Status status);

  Connections* const connections_;
  grpc_call* const call_;
  uint64_t connection_ = 0;         // The connection's number; 0 if unknown.
  std::optional<PeerProof> proof_;  // Set once it was asked for.
  std::optional<AuditLog::Event> audit_;

  // Guarded by the mutex of the connections.
  absl::Time began_;
  // Its place in Connections::silent_, until it has said who it is.
  std::optional<std::list<Caller*>::iterator> silent_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_CALLER_H_
