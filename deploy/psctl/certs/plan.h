#ifndef SLIPSTREAM_DEPLOY_PSCTL_CERTS_PLAN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CERTS_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/security/certified_identity.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/command_line.h"

namespace slipstream {

/// A certificate that a run needs.
struct PlannedCertificate {
  CertifiedIdentity identity;
  std::vector<std::string> hosts;  // Empty unless it is a server's.

  /// The name of its files without .crt and .key: "worker-3", as CredentialHolder names it.
  std::string FileStem() const;
};

/// The certificates of a run: its servers, its aggregators, its workers, one operator, one viewer
/// and one reader.
struct CertsPlan {
  std::string run;
  std::vector<PlannedCertificate> certificates;
};

/// Returns the certificates that `arguments` ask for. What they leave open is taken from `spec`,
/// which may be null. The certificate of each server and aggregator is also for localhost,
/// 127.0.0.1 and ::1, so that a run on one machine needs no other. INVALID_ARGUMENT, naming the
/// flag, if a run's name, a host or a number is wrong or missing.
absl::StatusOr<CertsPlan> PlanCerts(const CertsInitArguments& arguments, const RunSpec* spec);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CERTS_PLAN_H_
