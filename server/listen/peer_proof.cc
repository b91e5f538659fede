#include "server/listen/peer_proof.h"

#include <fmt/format.h>
#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>

#include <memory>
#include <string_view>
#include <vector>

namespace slipstream {
namespace {

/// gRPC has no constant for this value.
constexpr char kInsecure[] = "insecure";

struct ReleaseContext {
  void operator()(grpc_auth_context* context) const { grpc_auth_context_release(context); }
};
using ContextHandle = std::unique_ptr<grpc_auth_context, ReleaseContext>;

std::vector<std::string> PropertiesOf(const grpc_auth_context* context, const char* name) {
  std::vector<std::string> values;
  grpc_auth_property_iterator next = grpc_auth_context_find_properties_by_name(context, name);
  while (const grpc_auth_property* property = grpc_auth_property_iterator_next(&next)) {
    values.emplace_back(property->value, property->value_length);
  }
  return values;
}

absl::Status MayActAs(const PeerProof& proof, CertifiedRole role, uint32_t number) {
  if (proof.kind == PeerProof::Kind::kNone) return absl::OkStatus();
  const bool is_worker = role == CertifiedRole::kWorker;
  if (proof.kind == PeerProof::Kind::kToken && is_worker) return absl::OkStatus();
  const std::optional<CertifiedIdentity>& identity = proof.identity;
  const bool is_role = identity.has_value() && identity->role == role;
  if (is_role && identity->number.value_or(number) == number) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("{} may not act as {} {}", proof.Text(), NameOf(role), number));
}

}  // namespace

std::optional<WorkerId> PeerProof::worker() const {
  const bool is_worker = identity.has_value() && identity->role == CertifiedRole::kWorker;
  if (!is_worker || !identity->number.has_value()) return std::nullopt;
  return WorkerId{*identity->number};
}

std::string PeerProof::Text() const {
  if (identity.has_value()) return identity->ToUri();
  return kind == Kind::kToken ? "token" : "-";
}

PeerProof ProofOf(grpc_call* call) {
  const ContextHandle context(grpc_call_auth_context(call));
  if (context == nullptr) return {};
  const std::vector<std::string> types =
      PropertiesOf(context.get(), GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  if (types.empty() || types.front() == kInsecure) return {};
  if (types.front() != GRPC_TLS_TRANSPORT_SECURITY_TYPE) return {.kind = PeerProof::Kind::kUnknown};
  const auto identity = IdentityAmong(PropertiesOf(context.get(), GRPC_PEER_URI_PROPERTY_NAME));
  if (identity.ok()) return {.kind = PeerProof::Kind::kCertificate, .identity = *identity};
  return {.kind = PeerProof::Kind::kToken};
}

absl::Status MayActAs(const PeerProof& proof, WorkerId worker) {
  return MayActAs(proof, CertifiedRole::kWorker, Value(worker));
}

absl::Status MayActAs(const PeerProof& proof, ShardId shard) {
  return MayActAs(proof, CertifiedRole::kServer, Value(shard));
}

}  // namespace slipstream
