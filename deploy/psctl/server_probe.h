#ifndef SLIPSTREAM_DEPLOY_PSCTL_SERVER_PROBE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_SERVER_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/config/server_address.h"
#include "common/files/file_descriptor.h"
#include "common/security/credential_files.h"

namespace slipstream {

// Steps towards a server, each by itself, so that one that fails can be named: gRPC says no more
// than that it failed to connect.

/// The addresses that a name stands for, as text. NOT_FOUND with the resolver's reason.
absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host);

/// Connects to the first address of `server` that answers. The socket does not block. UNAVAILABLE
/// with the system's reason of the last.
absl::StatusOr<FileDescriptor> ConnectTo(const ServerAddress& server, absl::Time deadline);

/// The first words of a server to somebody who talks to it.
enum class FirstWords {
  kHttp2,     // What a gRPC server says.
  kTlsAlert,  // It takes what was sent for a broken handshake.
  kOther,
  kClosed,   // The connection ended.
  kNothing,  // Until the deadline.
};

/// Begins to talk HTTP/2 in plaintext.
FirstWords GreetInPlaintext(const FileDescriptor& connection, absl::Time deadline);

/// The result of a TLS handshake.
struct TlsHandshake {
  std::string protocol;     // "TLSv1.3"
  std::string certificate;  // The server's chain, in PEM form.

  /// Whether the server went on once it had seen our certificate: what it said then, and the alert
  /// that it sent instead.
  FirstWords then = FirstWords::kNothing;
  std::string alert;
};

/// Shakes hands, whatever the server's certificate is, and begins to talk HTTP/2. UNAVAILABLE with
/// OpenSSL's reason where there was no handshake, and `wrong version number` in it where the server
/// does not speak TLS.
absl::StatusOr<TlsHandshake> ShakeHands(const FileDescriptor& connection, const std::string& host,
                                        const CredentialFiles& files, absl::Time deadline);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_SERVER_PROBE_H_
