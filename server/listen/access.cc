#include "server/listen/access.h"

#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>

#include <vector>

#include "common/process/steady_time.h"
#include "common/rpc/secure_credentials.h"
#include "common/rpc/status_conversion.h"
#include "common/security/certified_identity.h"
#include "server/listen/method_roles.h"

namespace slipstream {
namespace {

std::string_view Text(grpc::string_ref text) { return {text.data(), text.size()}; }

std::string_view Find(const grpc::AuthMetadataProcessor::InputMetadata& metadata,
                      const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string_view() : Text(found->second);
}

}  // namespace

Access::Access(std::string run, const std::string& token, AuditLog& audit)
    : run_(std::move(run)), takes_tokens_(!token.empty()), tokens_(token), audit_(audit) {}

grpc::Status Access::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                             OutputMetadata* consumed, OutputMetadata*) {
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : context->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(Text(uri));
  }
  const std::string_view authorization = Find(metadata, kTokenMetadata);
  const std::string_view method = Find(metadata, ":path");
  if (!authorization.empty()) consumed->emplace(kTokenMetadata, std::string(authorization));
  return ToGrpc(Admit(uris, authorization, method, method));
}

absl::Status Access::Admit(const std::vector<std::string>& uris, std::string_view authorization,
                           std::string_view method, std::string_view asked) {
  absl::Status checked = Check(uris, authorization, method);
  if (checked.ok()) return checked;
  audit_.Note({.event = "refused",
               .identity = uris.empty() ? "-" : uris.front(),
               .method = std::string(asked),
               .reason = std::string(checked.message())});
  return checked;
}

absl::Status Access::Check(const std::vector<std::string>& uris, std::string_view authorization,
                           std::string_view method) {
  const absl::StatusOr<CertifiedIdentity> identity = IdentityAmong(uris);
  if (identity.ok()) {
    if (identity->run != run_) {
      return absl::PermissionDeniedError(fmt::format(
          "the certificate is for {}, and this is the run {}", identity->ToUri(), run_));
    }
    if (MayCall(identity->role, method)) return absl::OkStatus();
    return absl::PermissionDeniedError(fmt::format("{} may not call {}: its role is {}",
                                                   identity->ToUri(), std::string(method),
                                                   NameOf(identity->role)));
  }
  if (!takes_tokens_) return absl::UnauthenticatedError(identity.status().message());
  if (authorization.empty()) {
    return absl::UnauthenticatedError("neither a certificate of the run nor its token was shown");
  }
  const std::string_view scheme = kTokenScheme;
  if (!authorization.starts_with(scheme) ||
      !tokens_.Holds(authorization.substr(scheme.size()), SteadyNow())) {
    return absl::UnauthenticatedError(
        "the token is not one of the run's: compare it with the file that security.token "
        "names on the server");
  }
  if (TokenMayCall(method)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("a token does not suffice for {}: that is for servers", std::string(method)));
}

}  // namespace slipstream
