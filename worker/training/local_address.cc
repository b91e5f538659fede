#include "worker/training/local_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "common/config/server_address.h"

namespace slipstream {
namespace {

/// Returns the own end of a datagram socket that is connected to `address`; empty if that fails.
/// Connecting such a socket only chooses the way.
std::string OwnEnd(const addrinfo& address) {
  const int descriptor = socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return "";
  const absl::Cleanup closes = [descriptor] { close(descriptor); };
  sockaddr_storage own = {};
  socklen_t size = sizeof(own);
  auto* const own_address = reinterpret_cast<sockaddr*>(&own);
  if (connect(descriptor, address.ai_addr, address.ai_addrlen) != 0) return "";
  if (getsockname(descriptor, own_address, &size) != 0) return "";
  std::array<char, NI_MAXHOST> text;
  const int named =
      getnameinfo(own_address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return named == 0 ? std::string(text.data()) : "";
}

}  // namespace

absl::StatusOr<std::string> LocalAddressTowards(const std::string& server) {
  const std::optional<ServerAddress> address = ParseServerAddress(server);
  if (!address.has_value()) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is no address host:port", server));
  }
  std::string host = address->host;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failure =
      getaddrinfo(host.c_str(), fmt::format("{}", address->port).c_str(), &hints, &found);
  if (failure != 0) {
    return absl::UnavailableError(fmt::format("{}: {}", server, gai_strerror(failure)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  std::string own;
  for (const addrinfo* each = found; each != nullptr && own.empty(); each = each->ai_next) {
    own = OwnEnd(*each);
  }
  const bool is_loopback = own == "::1" || own.starts_with("127.");
  if (is_loopback && !address->IsLoopback()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} means this machine itself here, so other workers cannot be told how to reach it: let "
        "the name in /etc/hosts stand for the machine's address, or name that in cluster.servers",
        host));
  }
  if (!own.empty()) return own;
  return absl::UnavailableError(
      fmt::format("no way leads from this machine to {}: {}", server, std::strerror(errno)));
}

}  // namespace slipstream
