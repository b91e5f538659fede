#ifndef SLIPSTREAM_COMMON_SECURITY_CREDENTIAL_FILES_H_
#define SLIPSTREAM_COMMON_SECURITY_CREDENTIAL_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certificate.h"
#include "common/security/certified_identity.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The process that credentials are for. Its name is that of its files: "server-0", "worker-3",
/// "worker" for a worker whose id the coordinator chooses, "operator" for psctl, "reader".
struct CredentialHolder {
  CertifiedRole role = CertifiedRole::kOperator;
  std::optional<uint32_t> number;

  std::string name() const;
};

/// The files by which a process shows who it is and checks others. Without an authority nothing is
/// encrypted, and the other paths are empty.
struct CredentialFiles {
  std::string ca;
  std::string certificate;  // Empty if the process shows none.
  std::string key;
  std::string token;  // Empty if there is none.

  bool is_encrypted() const { return !ca.empty(); }
};

/// Fills in what `security` leaves open: the certificate and the key lie beside the authority's
/// certificate, under the holder's name. `{member}` in a path stands for that name. A client that
/// has a token and names no certificate of its own shows none.
CredentialFiles FilesFor(const SecuritySpec& security, const CredentialHolder& holder);

/// The contents of a process's files.
struct OwnCredentials {
  std::optional<CertifiedIdentity> identity;  // Nothing without a certificate.

  /// When the certificate begins to be valid, and when it or the authority's ends, whichever is
  /// sooner.
  absl::Time begins = absl::InfinitePast();
  absl::Time ends = absl::InfiniteFuture();

  std::string certificate;  // In PEM form.

  /// The files with secrets that every user of the machine can read.
  std::vector<std::string> open_files;
};

/// Checks the files as both ends of a connection will, so that no handshake fails for a reason that
/// nobody sees: all can be read, the key fits the certificate, the authority has signed it, it is
/// valid at `now`, and it is for the holder's role and number. Without an authority there is
/// nothing to check. NOT_FOUND or INVALID_ARGUMENT, naming the file, what is wrong, and what to do.
absl::StatusOr<OwnCredentials> CheckCredentials(const CredentialFiles& files,
                                                const CredentialHolder& holder, absl::Time now);

/// Returns whether a certificate should be renewed: in the last third of its time, but not before
/// the last two weeks.
bool EndsSoon(absl::Time begins, absl::Time ends, absl::Time now);

/// Logs warnings about a certificate that ends soon, and about secrets that others can read.
void WarnAbout(const OwnCredentials& own, const CredentialFiles& files, absl::Time now);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_CREDENTIAL_FILES_H_
