#ifndef SLIPSTREAM_SERVER_HTTP_TLS_SESSION_H_
#define SLIPSTREAM_SERVER_HTTP_TLS_SESSION_H_

#include <openssl/ssl.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/security/credential_files.h"
#include "common/security/openssl_handles.h"

namespace slipstream {

/// Reads and writes a connection that does not block, over TLS or, as default-constructed, plainly.
/// Every call has a deadline.
///
/// Not thread-safe: one owner.
class TlsSession {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  TlsSession() = default;

  /// Makes the server's end of a connection, with the files as they are now: a renewed certificate
  /// applies to the next connection. A client that shows a certificate has to show one that the
  /// authority has signed; whether it has to show one is up to whoever answers its requests, since
  /// probes of a health check have none. UNAVAILABLE, naming what is wrong with the files, the
  /// handshake or the peer.
  static absl::StatusOr<TlsSession> Accept(const CredentialFiles& files, int connection,
                                           Deadline deadline);

  bool is_encrypted() const { return ssl_ != nullptr; }

  /// Returns the URIs that the peer's certificate names; none if it has shown none.
  std::vector<std::string> PeerUris() const;

  /// Returns the number of bytes that were read; 0 or less at the end, and after the deadline.
  ssize_t Read(int connection, std::span<char> bytes, Deadline deadline);

  /// Writes all of `bytes`. Returns their number, or -1.
  ssize_t Write(int connection, std::string_view bytes, Deadline deadline);

 private:
  using Handle = std::unique_ptr<SSL, OpensslFree<SSL_free>>;

  explicit TlsSession(Handle ssl) : ssl_(std::move(ssl)) {}

  Handle ssl_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_HTTP_TLS_SESSION_H_
