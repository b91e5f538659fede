#ifndef SLIPSTREAM_COMMON_SECURITY_AUTHORITY_H_
#define SLIPSTREAM_COMMON_SECURITY_AUTHORITY_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certified_identity.h"

namespace slipstream {

/// A certificate and its private key (EC P-256), both in PEM form.
struct KeyedCertificate {
  std::string key;
  std::string certificate;
};

/// When a certificate is valid.
struct Validity {
  absl::Time begins;
  absl::Time ends;
};

/// The certificate and key of an authority that signs itself, for the members of one run.
KeyedCertificate MakeAuthority(const std::string& run, const Validity& validity);

/// A member's new key, and its certificate, which `authority` signs. `hosts` are the names and
/// addresses by which clients reach it; servers alone have some. Servers may use theirs at both
/// ends of a connection, as they call the first of them; others only as clients. `validity` ends
/// with the authority's at the latest. INVALID_ARGUMENT if the authority cannot be read.
absl::StatusOr<KeyedCertificate> Certify(const KeyedCertificate& authority,
                                         const CertifiedIdentity& identity,
                                         const std::vector<std::string>& hosts,
                                         const Validity& validity);

/// A certificate as `certificate` is, for the same key, with another validity. The key stays, so
/// that a process that reads both files in between has a pair that fits. INVALID_ARGUMENT if
/// `authority` has not signed the old one, or it names no member.
absl::StatusOr<std::string> Renew(const KeyedCertificate& authority, std::string_view certificate,
                                  const Validity& validity);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_AUTHORITY_H_
