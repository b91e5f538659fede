#ifndef SLIPSTREAM_COMMON_SECURITY_CREDENTIAL_FILES_H_
#define SLIPSTREAM_COMMON_SECURITY_CREDENTIAL_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/run/run_spec.h"
#include "common/security/certificate.h"
#include "common/security/certified_identity.h"

namespace slipstream {

/// The process that credentials are for, as its files are named: "server-0", "worker-3", "worker"
/// for one whose id the coordinator chooses, "operator" for psctl.
struct CredentialHolder {
  CertifiedRole role = CertifiedRole::kOperator;
  std::optional<uint32_t> number;

  std::string name() const;
};

/// The files by which one process shows who it is and knows others. Without an authority nothing is
/// encrypted, and there are no others.
struct CredentialFiles {
  std::string ca;
  std::string certificate;  // Empty: the process shows none.
  std::string key;
  std::string token;  // Empty: there is none.

  bool is_encrypted() const { return !ca.empty(); }
};

/// Fills in what `security` leaves open: the certificate and the key lie beside the authority's
/// certificate, under the holder's name. `{member}` in a path stands for that name. A client that
/// has a token, and no certificate of its own named, shows none.
CredentialFiles FilesFor(const SecuritySpec& security, const CredentialHolder& holder);

/// The contents of a process's files.
struct OwnCredentials {
  std::optional<CertifiedIdentity> identity;  // Nothing without a certificate.

  /// When the certificate, or the authority's if that is sooner, begins and ends to be valid.
  absl::Time begins = absl::InfinitePast();
  absl::Time ends = absl::InfiniteFuture();

  std::string certificate;  // In PEM form.

  /// Files with secrets that every user of the machine can read.
  std::vector<std::string> open_files;
};

/// Looks at the files as both ends of a connection will, so that no handshake fails for a reason
/// that nobody is told: all can be read, the key is the certificate's, the authority has signed it,
/// it is valid at `now`, and it is for the holder's role and number. Nothing is wrong without an
/// authority. NOT_FOUND or INVALID_ARGUMENT, naming the file, what is wrong, and what to do.
absl::StatusOr<OwnCredentials> CheckCredentials(const CredentialFiles& files,
                                                const CredentialHolder& holder, absl::Time now);

/// Whether a certificate should be renewed: in the last third of its time, and not before the last
/// two weeks.
bool EndsSoon(absl::Time begins, absl::Time ends, absl::Time now);

/// Warns in the log of a certificate that ends soon, and of secrets that others can read.
void WarnAbout(const OwnCredentials& own, const CredentialFiles& files, absl::Time now);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_CREDENTIAL_FILES_H_
