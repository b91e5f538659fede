#ifndef SLIPSTREAM_SERVER_HTTP_HTTP_SERVICE_H_
#define SLIPSTREAM_SERVER_HTTP_HTTP_SERVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/config/server_address.h"
#include "common/security/credential_files.h"
#include "common/settings/http_spec.h"
#include "server/http/http_pages.h"
#include "server/http/http_port.h"

namespace slipstream {

/// The HTTP port of a server, with what is answered there.
///
/// Not thread-safe: one owner.
class HttpService {
 public:
  /// Takes the port that the settings name. On loopback, nothing is encrypted. `public_host` is the
  /// server's name for others. Fails as ListenOnTcp does, and says what to do.
  /// REQUIRES: the settings name one, and have been checked.
  static absl::StatusOr<std::unique_ptr<HttpService>> Listen(const HttpSpec& settings,
                                                             std::string public_host,
                                                             CredentialFiles credentials);

  /// Returns where it is for others, such as "http://localhost:9464".
  std::string url() const;

  /// Begins to answer. `pages` need not say what Listen knows: `access` counts only if the port is
  /// encrypted.
  absl::Status Start(HttpPages::Options pages);

  /// Returns whether somebody scrapes the figures regularly and has yet to see how the run ended.
  /// To be called once it has.
  bool AwaitsLastScrape() { return pages_ != nullptr && pages_->AwaitsLastScrape(); }

 private:
  HttpService(ServerAddress address, std::string public_host, std::unique_ptr<HttpPort> port)
      : address_(std::move(address)),
        public_host_(std::move(public_host)),
        port_(std::move(port)) {}

  // Constant after construction.
  const ServerAddress address_;  // As in the settings.
  const std::string public_host_;

  std::unique_ptr<HttpPages> pages_;  // Set by Start.
  std::unique_ptr<HttpPort> port_;    // Last: its threads use all above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_HTTP_HTTP_SERVICE_H_
