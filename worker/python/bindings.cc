#include "worker/python/bindings.h"

#include "absl/time/clock.h"

namespace slipstream {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(
    const std::map<std::string, std::string>& files, CertifiedRole role,
    std::optional<uint32_t> number) {
  const auto of = [&files](const std::string& name) {
    const auto found = files.find(name);
    return found == files.end() ? std::string() : found->second;
  };
  const SecuritySpec security = {
      .mtls = {.ca = of("ca"), .certificate = of("certificate"), .key = of("key")},
      .token = of("token")};
  const CredentialHolder holder = {.role = role, .number = number};
  const CredentialFiles own = FilesFor(security, holder);
  const absl::StatusOr<OwnCredentials> checked = CheckCredentials(own, holder, absl::Now());
  if (!checked.ok()) return checked.status();
  WarnAbout(*checked, own, absl::Now());
  return MakeChannelCredentials(own);
}

void CheckProcess(pid_t process) {
  if (getpid() == process) return;
  throw Failure(absl::UnimplementedError(
      "this process was forked from the worker's: only the worker itself may use its run"));
}

}  // namespace slipstream
