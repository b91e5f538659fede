#ifndef SLIPSTREAM_SERVER_LISTEN_PEER_PROOF_H_
#define SLIPSTREAM_SERVER_LISTEN_PEER_PROOF_H_

#include <grpc/grpc.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/security/certified_identity.h"

namespace slipstream {

/// How the peer of a call has proved who it is.
struct PeerProof {
  enum class Kind {
    kNone,         // It came in plaintext, or over a local socket, which looks at the user.
    kCertificate,  // By a certificate of the run.
    kToken,        // By the run's token, without a certificate of the run.
    kUnknown,      // In a way that nobody here knows: it may act as no member.
  };
  Kind kind = Kind::kNone;
  std::optional<CertifiedIdentity> identity;  // The certificate's.

  /// The worker that the certificate names, if it names one.
  std::optional<WorkerId> worker() const;

  /// For people: the certificate's URI, "token", or "-".
  std::string Text() const;
};

/// The proof of a call that was let in: see Access.
PeerProof ProofOf(grpc_call* call);

/// OK if a peer with this proof may act as the worker, or as the server of the shard;
/// PERMISSION_DENIED, naming both, otherwise.
absl::Status MayActAs(const PeerProof& proof, WorkerId worker);
absl::Status MayActAs(const PeerProof& proof, ShardId shard);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_PEER_PROOF_H_
