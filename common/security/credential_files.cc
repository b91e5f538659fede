#include "common/security/credential_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "common/log/log.h"
#include "common/security/token_file.h"

namespace slipstream {
namespace {

/// Returns the directory of a file, with the '/' at its end; empty for the working directory.
std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string Filled(const std::string& path, const std::string& member) {
  return absl::StrReplaceAll(path, {{"{member}", member}});
}

absl::Status About(const std::string& path, const absl::Status& status,
                   std::string_view remedy = "") {
  const std::string end = remedy.empty() ? "" : fmt::format("; {}", remedy);
  return absl::InvalidArgumentError(
      fmt::format("{}: {}{}", path, std::string(status.message()), end));
}

absl::Status NotThere(const absl::Status& status, const CredentialHolder& holder) {
  return absl::NotFoundError(
      fmt::format("{} (the certificate of {} and its key; psctl certs init makes them)",
                  std::string(status.message()), holder.name()));
}

std::vector<std::string> OpenFiles(const CredentialFiles& files) {
  std::vector<std::string> found;
  for (const std::string& path : {files.key, files.token}) {
    struct stat facts = {};
    const bool is_file = !path.empty() && stat(path.c_str(), &facts) == 0;
    if (is_file && (facts.st_mode & S_IRWXO) != 0) found.push_back(path);
  }
  return found;
}

/// Returns OK if the holder may use the identity.
absl::Status CheckHolder(const CertifiedIdentity& identity, const CredentialHolder& holder) {
  // Any role may watch; servers decide on the rest.
  const bool is_watcher =
      holder.role == CertifiedRole::kOperator || holder.role == CertifiedRole::kReader;
  const bool is_role = identity.role == holder.role || is_watcher;
  const bool is_number = !holder.number.has_value() || !identity.number.has_value() ||
                         *identity.number == *holder.number || is_watcher;
  if (is_role && is_number) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the certificate is for {}, and this is {}", identity.ToUri(), holder.name()));
}

}  // namespace

std::string CredentialHolder::name() const { return MemberName(role, number); }

CredentialFiles FilesFor(const SecuritySpec& security, const CredentialHolder& holder) {
  if (!security.is_encrypted()) return {};
  const MtlsSpec& mtls = security.mtls;
  const std::string beside = DirectoryOf(mtls.ca) + "{member}";
  CredentialFiles files = {
      .ca = mtls.ca,
      .certificate = mtls.certificate.empty() ? beside + ".crt" : mtls.certificate,
      .key = mtls.key.empty() ? beside + ".key" : mtls.key,
      .token = security.token};
  const bool is_client = holder.role != CertifiedRole::kServer;
  if (is_client && !security.token.empty() && mtls.certificate.empty()) {
    files.certificate = files.key = "";
  }
  for (std::string* path : {&files.ca, &files.certificate, &files.key, &files.token}) {
    *path = Filled(*path, holder.name());
  }
  return files;
}

absl::StatusOr<OwnCredentials> CheckCredentials(const CredentialFiles& files,
                                                const CredentialHolder& holder, absl::Time now) {
  if (!files.is_encrypted()) return OwnCredentials();
  const absl::StatusOr<std::string> ca = ReadSmallFile(files.ca);
  if (!ca.ok()) return ca.status();
  const absl::StatusOr<CertificateFacts> authority = ParseCertificate(*ca);
  if (!authority.ok()) return About(files.ca, authority.status());
  OwnCredentials own = {.identity = std::nullopt,
                        .begins = authority->begins,
                        .ends = authority->ends,
                        .open_files = OpenFiles(files)};
  if (!files.token.empty()) {
    const auto tokens = ReadTokens(files.token);
    if (!tokens.ok()) return tokens.status();
  }
  if (files.certificate.empty()) return own;

  const absl::StatusOr<std::string> certificate = ReadSmallFile(files.certificate);
  if (!certificate.ok()) return NotThere(certificate.status(), holder);
  const absl::StatusOr<std::string> key = ReadSmallFile(files.key);
  if (!key.ok()) return NotThere(key.status(), holder);
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(*certificate);
  if (!facts.ok()) return About(files.certificate, facts.status());
  if (const absl::Status match = CheckKey(*certificate, *key); !match.ok()) {
    return About(files.key, match);
  }
  // A server is a client, too: all servers call the first of them.
  absl::Status valid = VerifyCertificate(*ca, *certificate, TlsEnd::kClient, now);
  if (valid.ok() && holder.role == CertifiedRole::kServer) {
    valid = VerifyCertificate(*ca, *certificate, TlsEnd::kServer, now);
  }
  if (!valid.ok()) {
    return About(files.certificate, valid,
                 fmt::format("it must be signed by the authority in {}, and is valid from {} to {}",
                             files.ca, absl::FormatTime(facts->begins, absl::UTCTimeZone()),
                             absl::FormatTime(facts->ends, absl::UTCTimeZone())));
  }
  const absl::StatusOr<CertifiedIdentity> identity = IdentityAmong(facts->uris);
  if (!identity.ok()) return About(files.certificate, identity.status());
  if (const absl::Status is_for = CheckHolder(*identity, holder); !is_for.ok()) {
    return About(files.certificate, is_for);
  }
  own.identity = *identity;
  own.certificate = *certificate;
  own.begins = facts->begins;
  own.ends = std::min(own.ends, facts->ends);
  return own;
}

bool EndsSoon(absl::Time begins, absl::Time ends, absl::Time now) {
  return ends - now < std::min(absl::Hours(24 * 14), (ends - begins) / 3);
}

void WarnAbout(const OwnCredentials& own, const CredentialFiles& files, absl::Time now) {
  if (EndsSoon(own.begins, own.ends, now)) {
    LogWarning(
        "the certificate, or its authority's, ends soon: psctl certs renew",
        {{"file", files.certificate}, {"at", absl::FormatTime(own.ends, absl::UTCTimeZone())}});
  }
  for (const std::string& file : own.open_files) {
    LogWarning("every user of this machine can read a private file: chmod o-rwx", {{"file", file}});
  }
}

}  // namespace slipstream
