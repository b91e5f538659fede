#ifndef SLIPSTREAM_DEPLOY_PSCTL_OPERATE_SERVER_PROBE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_OPERATE_SERVER_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/config/server_address.h"
#include "common/files/file_descriptor.h"
#include "common/security/credential_files.h"

namespace slipstream {

// The steps of a connection to a server, one by one, so that the one that fails can be named. gRPC
// reports only that it failed to connect.

/// Returns the addresses that a name stands for, as text. NOT_FOUND with the resolver's reason.
absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host);

/// Connects to the first address of `server` that answers, and returns a non-blocking socket.
/// UNAVAILABLE, with the reason that the last address gave, if none answers.
absl::StatusOr<FileDescriptor> ConnectTo(const ServerAddress& server, absl::Time deadline);

/// The first answer of a server to a client's preface.
enum class FirstWords {
  kHttp2,     // The server speaks HTTP/2, as a gRPC server does.
  kTlsAlert,  // It took the preface for a broken TLS handshake.
  kOther,
  kClosed,   // It closed the connection.
  kNothing,  // It sent nothing until the deadline.
};

/// Sends the preface of HTTP/2 in plaintext, and returns how the server answers.
FirstWords GreetInPlaintext(const FileDescriptor& connection, absl::Time deadline);

/// The result of a TLS handshake.
struct TlsHandshake {
  std::string protocol;     // "TLSv1.3"
  std::string certificate;  // The server's chain, in PEM form.

  /// The server's answer after it had seen our certificate, and the alert that it may have sent
  /// instead.
  FirstWords then = FirstWords::kNothing;
  std::string alert;
};

/// Makes a TLS handshake, accepting any certificate of the server, and sends the preface of HTTP/2.
/// UNAVAILABLE with OpenSSL's reason if the handshake fails; the reason contains `wrong version
/// number` if the server does not speak TLS.
absl::StatusOr<TlsHandshake> ShakeHands(const FileDescriptor& connection, const std::string& host,
                                        const CredentialFiles& files, absl::Time deadline);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_OPERATE_SERVER_PROBE_H_
