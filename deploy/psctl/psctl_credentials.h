#ifndef SLIPSTREAM_DEPLOY_PSCTL_PSCTL_CREDENTIALS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PSCTL_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// How psctl shows a run who it is: as an operator, unless the certificate named in `security` says
/// otherwise. Fails as CheckCredentials.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PsctlCredentials(
    const SecuritySpec& security);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PSCTL_CREDENTIALS_H_
