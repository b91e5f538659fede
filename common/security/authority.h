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

/// The time in which a certificate is valid.
struct Validity {
  absl::Time begins;
  absl::Time ends;
};

/// Makes the certificate and key of an authority that signs itself, for the members of one run.
KeyedCertificate MakeAuthority(const std::string& run, const Validity& validity);

/// Makes a member's new key, and its certificate, which `authority` signs. `hosts` are the names
/// and addresses by which clients reach a server; other members have none. A server's certificate
/// is valid at both ends of a connection, since servers call the first of them; others are valid
/// for clients only. `validity` ends with the authority's at the latest. INVALID_ARGUMENT if the
/// authority cannot be read.
absl::StatusOr<KeyedCertificate> Certify(const KeyedCertificate& authority,
                                         const CertifiedIdentity& identity,
                                         const std::vector<std::string>& hosts,
                                         const Validity& validity);

/// Makes a certificate like `certificate`, for the same key, with another validity. The key stays,
/// so that a process that reads both files meanwhile has a pair that fits. INVALID_ARGUMENT if
/// `authority` has not signed the old certificate, or if that names no member.
absl::StatusOr<std::string> Renew(const KeyedCertificate& authority, std::string_view certificate,
                                  const Validity& validity);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_AUTHORITY_H_
