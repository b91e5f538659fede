#ifndef SLIPSTREAM_COMMON_SECURITY_CERTIFICATE_H_
#define SLIPSTREAM_COMMON_SECURITY_CERTIFICATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace slipstream {

/// The contents of an X.509 certificate.
struct CertificateFacts {
  std::string subject;  // For example "CN=worker-3,OU=mnist,O=Slipstream".
  absl::Time begins;
  absl::Time ends;
  bool is_authority = false;

  // Subject alternative names.
  std::vector<std::string> uris;
  std::vector<std::string> hosts;  // Names and addresses.
};

/// The end of a connection that shows a certificate.
enum class TlsEnd { kServer, kClient };

/// Reads a file of at most a MiB. NOT_FOUND, naming path and reason, if it cannot be read.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

/// Reads the first certificate of a PEM text. INVALID_ARGUMENT if there is none.
absl::StatusOr<CertificateFacts> ParseCertificate(std::string_view pem);

/// Returns OK if a peer that trusts the authorities in `ca` accepts the chain of certificates in
/// `certificate` at `now`, as shown by `end`. INVALID_ARGUMENT with OpenSSL's reason otherwise.
absl::Status VerifyCertificate(std::string_view ca, std::string_view certificate, TlsEnd end,
                               absl::Time now);

/// Returns OK if `key` is the private key of the first certificate in `certificate`.
absl::Status CheckKey(std::string_view certificate, std::string_view key);

/// Returns OK if the certificate is for `host`, a name or an address (IPv6 may be in brackets).
absl::Status CheckHost(std::string_view certificate, std::string_view host);

/// Returns the newest error that OpenSSL has noted in this thread, in words, and forgets all
/// errors.
std::string TakeOpensslError();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_CERTIFICATE_H_
