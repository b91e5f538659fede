#ifndef SLIPSTREAM_DEPLOY_PSCTL_CERTS_PLAN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CERTS_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/run/run_spec.h"
#include "common/security/certified_identity.h"
#include "deploy/psctl/command_line.h"

namespace slipstream {

/// A certificate that a run needs.
struct PlannedCertificate {
  CertifiedIdentity identity;
  std::vector<std::string> hosts;  // Of a server.

  /// "worker-3", as CredentialHolder names it; its files are that with .crt and .key.
  std::string FileStem() const;
};

/// The certificates of a run: its servers, its workers, one operator and one viewer.
struct CertsPlan {
  std::string run;
  std::vector<PlannedCertificate> certificates;
};

/// The certificates that `arguments` ask for; where they leave something open, `spec` (nullptr:
/// there is none) says it. Each server's certificate is also for localhost, 127.0.0.1 and ::1, so
/// that a run on one machine needs no other. INVALID_ARGUMENT, naming the flag, if a run's name, a
/// host or a number is wrong or missing.
absl::StatusOr<CertsPlan> PlanCerts(const CertsInitArguments& arguments, const RunSpec* spec);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CERTS_PLAN_H_
