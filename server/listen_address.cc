#include "server/listen_address.h"

#include <optional>

#include "common/config/server_address.h"

namespace slipstream {
std::string ListenAddress::ToString() const { return host + ":" + std::to_string(port); }

std::string ListenAddress::PublicAddress(int actual_port) const {
  return public_host + ":" + std::to_string(actual_port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text, std::string_view configured,
                                                 bool may_leave_machine) {
  const std::optional<ServerAddress> address = ParseAddressToListenOn(text);
  if (!address.has_value()) {
    return absl::InvalidArgumentError("not a host:port to listen on: " + std::string(text));
  }
  if (!address->IsLoopback() && !may_leave_machine) {
    return absl::InvalidArgumentError(
        "listening on " + std::string(text) +
        " lets others on the network read and change the run, as nothing is encrypted; set "
        "security.mtls (psctl certs init makes certificates), or write security: {plaintext: "
        "accept_the_risk} if they are trusted");
  }
  ListenAddress listen{address->host, address->port, address->host};
  if (address->IsWildcard()) {
    const std::optional<ServerAddress> known = ParseServerAddress(configured);
    if (known.has_value()) listen.public_host = known->host;
  }
  return listen;
}

}  // namespace slipstream
