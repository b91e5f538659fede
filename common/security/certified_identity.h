#ifndef SLIPSTREAM_COMMON_SECURITY_CERTIFIED_IDENTITY_H_
#define SLIPSTREAM_COMMON_SECURITY_CERTIFIED_IDENTITY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace slipstream {

/// The role of a certificate's holder in a run.
enum class CertifiedRole : uint8_t {
  kServer,    // Serves a shard.
  kWorker,    // Trains.
  kOperator,  // Watches and steers.
  kViewer,    // Watches.
  kReader,    // Watches, and reads the weights.
};

/// Returns the role's name in a URI: "server", "worker", "operator", "viewer" or "reader".
std::string_view NameOf(CertifiedRole role);

/// Returns the name of a member's files: "server-0", "worker-3"; "worker" for any worker,
/// "operator", "viewer", "reader".
std::string MemberName(CertifiedRole role, std::optional<uint32_t> number);

/// The holder of a certificate, which is named by one URI among the subject's alternative names:
///
///   slipstream://run/mnist/server/0      the server of shard 0
///   slipstream://run/mnist/server/5      of 2 shards: the aggregator of group 1 for shard 1
///   slipstream://run/mnist/worker/3      the worker with the id 3
///   slipstream://run/mnist/worker/*      any worker
///   slipstream://run/mnist/operator
///   slipstream://run/mnist/viewer
///   slipstream://run/mnist/reader
struct CertifiedIdentity {
  std::string run;  // The `name` of run.yaml.
  CertifiedRole role = CertifiedRole::kViewer;

  /// The shard of a server, the number of an aggregator (ClusterSpec::AggregatorNumber) or the id
  /// of a worker; nothing for any worker, and for the other roles.
  std::optional<uint32_t> number;

  std::string ToUri() const;
  friend bool operator==(const CertifiedIdentity&, const CertifiedIdentity&) = default;
};

/// Parses a URI. Returns nothing if it is none of the above, to the letter: numbers are in decimal
/// digits without leading zeros, and below the most shards and workers that a run may have; names
/// are as in run.yaml.
std::optional<CertifiedIdentity> ParseIdentity(std::string_view uri);

/// Returns the one identity among a certificate's URIs. URIs that do not begin with slipstream: are
/// ignored. INVALID_ARGUMENT, saying what is wrong, if there is none, a second, or a wrong one.
absl::StatusOr<CertifiedIdentity> IdentityAmong(const std::vector<std::string>& uris);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_CERTIFIED_IDENTITY_H_
