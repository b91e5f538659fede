#include "deploy/psctl/psctl_credentials.h"

#include "absl/time/clock.h"
#include "common/rpc/secure_credentials.h"
#include "common/security/credential_files.h"

namespace slipstream {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PsctlCredentials(
    const SecuritySpec& security) {
  const CredentialHolder holder = {.role = CertifiedRole::kOperator};
  const CredentialFiles files = FilesFor(security, holder);
  const absl::StatusOr<OwnCredentials> own = CheckCredentials(files, holder, absl::Now());
  if (!own.ok()) return own.status();
  return MakeChannelCredentials(files);
}

}  // namespace slipstream
