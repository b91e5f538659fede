#include "common/security/certified_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/limits.h"
#include "common/base/printable.h"

namespace slipstream {
namespace {

/// Servers of shards come first, and then the aggregators of each group of two workers or more.
constexpr uint32_t kServerNumbers = kServersMax * (1 + kWorkersMax / 2);

constexpr std::string_view kScheme = "slipstream:";
constexpr std::string_view kPrefix = "slipstream://run/";
constexpr std::array<std::string_view, 5> kRoleNames = {"server", "worker", "operator", "viewer",
                                                        "reader"};

/// Returns whether `name` may be run.yaml's `name`: 1 to 64 letters, digits, '.', '_' and '-'.
bool IsRunName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

/// Removes the text up to the next '/', and the '/', from `text`. Returns what came before the '/'.
std::string_view TakePart(std::string_view& text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const std::string_view part = text.substr(0, slash);
  text.remove_prefix(std::min(slash + 1, text.size()));
  return part;
}

std::optional<uint32_t> ParseNumber(std::string_view text, uint32_t end) {
  uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (!is_whole || number >= end || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  return number;
}

}  // namespace

std::string_view NameOf(CertifiedRole role) { return kRoleNames[static_cast<size_t>(role)]; }

std::string MemberName(CertifiedRole role, std::optional<uint32_t> number) {
  return number.has_value() ? fmt::format("{}-{}", NameOf(role), *number)
                            : std::string(NameOf(role));
}

std::string CertifiedIdentity::ToUri() const {
  std::string uri = fmt::format("{}{}/{}", kPrefix, run, NameOf(role));
  if (number.has_value()) return fmt::format("{}/{}", uri, *number);
  return role == CertifiedRole::kWorker ? uri + "/*" : uri;
}

std::optional<CertifiedIdentity> ParseIdentity(std::string_view uri) {
  if (!uri.starts_with(kPrefix)) return std::nullopt;
  std::string_view rest = uri.substr(kPrefix.size());
  CertifiedIdentity identity;
  identity.run = TakePart(rest);
  const auto* const role = std::ranges::find(kRoleNames, TakePart(rest));
  if (!IsRunName(identity.run) || role == kRoleNames.end()) return std::nullopt;
  identity.role = static_cast<CertifiedRole>(role - kRoleNames.begin());
  if (identity.role == CertifiedRole::kServer) identity.number = ParseNumber(rest, kServerNumbers);
  if (identity.role == CertifiedRole::kWorker) identity.number = ParseNumber(rest, kWorkersMax);
  // Parts that were not understood, or are left over, are missing from this URI.
  if (identity.ToUri() != uri) return std::nullopt;
  const bool needs_number = identity.role == CertifiedRole::kServer;
  if (needs_number && !identity.number.has_value()) return std::nullopt;
  return identity;
}

absl::StatusOr<CertifiedIdentity> IdentityAmong(const std::vector<std::string>& uris) {
  std::optional<CertifiedIdentity> found;
  for (const std::string& uri : uris) {
    if (!uri.starts_with(kScheme)) continue;
    const std::optional<CertifiedIdentity> identity = ParseIdentity(uri);
    if (!identity.has_value()) {
      return absl::InvalidArgumentError("the certificate's URI " + Printable(uri) +
                                        " names no role of a run");
    }
    if (found.has_value()) {
      return absl::InvalidArgumentError("the certificate names two roles, " + found->ToUri() +
                                        " and " + uri);
    }
    found = identity;
  }
  if (found.has_value()) return *found;
  return absl::InvalidArgumentError(
      "the certificate names no role: it has no URI as slipstream://run/NAME/worker/3");
}

}  // namespace slipstream
