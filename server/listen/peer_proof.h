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
    kNone,         // It came in plaintext, or over a local socket, which checks the user.
    kCertificate,  // It showed a certificate of the run.
    kToken,        // It showed the run's token, and no certificate of the run.
    kUnknown,      // It was checked in an unknown way, and may act as no member.
  };
  Kind kind = Kind::kNone;
  std::optional<CertifiedIdentity> identity;  // The certificate's identity.

  /// Returns the worker that the certificate names, if it names one.
  std::optional<WorkerId> worker() const;

  /// Returns for people the certificate's URI, "token", or "-".
  std::string Text() const;
};

/// Returns the proof of a call that Access has let in.
PeerProof ProofOf(grpc_call* call);

/// Return OK if a peer with this proof may act as the worker, or as the server of the shard; else
/// PERMISSION_DENIED, naming both.
absl::Status MayActAs(const PeerProof& proof, WorkerId worker);
absl::Status MayActAs(const PeerProof& proof, ShardId shard);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_PEER_PROOF_H_
