#include "server/listen/tcp_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "common/log/log.h"

namespace slipstream {
namespace {

// Long, because all workers connect at once when a run begins.
constexpr int kWaitingMax = SOMAXCONN;

// A port that the system chose for one address may be taken for another, so others are tried.
constexpr int kPortTries = 10;

std::string ErrorText(int error) { return std::generic_category().message(error); }

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }

  in_port_t& port() {
    return family() == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                : reinterpret_cast<sockaddr_in*>(&storage)->sin_port;
  }

  friend bool operator==(const Address& one, const Address& other) {
    return one.length == other.length && std::memcmp(&one.storage, &other.storage, one.length) == 0;
  }
};

std::string TextOf(const Address& address) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  (void)getnameinfo(address.get(), address.length, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV);
  return address.family() == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                      : fmt::format("{}:{}", host, port);
}

std::string WithoutBrackets(const std::string& host) {
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

bool IsWildcard(const Address& address) {
  if (address.family() == AF_INET6) {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    return IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr);
  }
  return reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr == INADDR_ANY;
}

bool IsLoopback(const Address& address) {
  if (address.family() == AF_INET6) {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    return IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
  }
  const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address.storage);
  return ntohl(ipv4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

/// Warns of a name that only this machine finds here: /etc/hosts often gives a machine's own name
/// the address 127.0.1.1.
void WarnOfOwnName(const std::string& host, const std::vector<Address>& addresses) {
  in6_addr any = {};
  const bool is_meant = host.starts_with("localhost") || host == "ip6-localhost" ||
                        inet_pton(AF_INET, host.c_str(), &any) == 1 ||
                        inet_pton(AF_INET6, WithoutBrackets(host).c_str(), &any) == 1;
  if (is_meant || !std::ranges::all_of(addresses, IsLoopback)) return;
  LogWarning("other machines cannot reach this one by the name that it listens on",
             {{"name", host},
              {"address_here", TextOf(addresses.front())},
              {"advice", "listen on an address of the network, or correct /etc/hosts"}});
}

/// Returns whether no further try will find the host.
bool IsUnknown(int error) {
  return error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY ||
         error == EAI_FAMILY;
}

absl::StatusOr<std::vector<Address>> Resolve(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    const std::string reason = error == EAI_SYSTEM ? ErrorText(errno) : gai_strerror(error);
    const std::string text = fmt::format("cannot listen on {}: {}", host, reason);
    return IsUnknown(error) ? absl::InvalidArgumentError(text) : absl::ResourceExhaustedError(text);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Address address;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    // A name may resolve to the same address twice.
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  return addresses;
}

/// Returns whether an address cannot be listened on because there is no IPv6.
bool LacksIpv6(const Address& address, int error) {
  return address.family() == AF_INET6 && (error == EAFNOSUPPORT || error == EADDRNOTAVAIL);
}

/// The options of listening sockets.
struct Manner {
  bool takes_both_kinds = false;
  int unacknowledged_max_ms = 0;
};

/// Listens on `address` and writes the port that it got to it. Returns an errno, or 0.
int Listen(Address& address, const Manner& manner, FileDescriptor& socket) {
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  socket = FileDescriptor(::socket(address.family(), type, 0));
  if (!socket.is_open()) return errno;
  const auto set = [&](int level, int option, int value) {
    return setsockopt(socket.get(), level, option, &value, sizeof(value)) == 0;
  };
  // A server may come back while connections of the one before are still ending.
  if (!set(SOL_SOCKET, SO_REUSEADDR, 1)) return errno;
  const bool is_ipv6 = address.family() == AF_INET6;
  if (is_ipv6 && !set(IPPROTO_IPV6, IPV6_V6ONLY, manner.takes_both_kinds ? 0 : 1)) return errno;
  // Accepted connections inherit these options.
  if (!set(IPPROTO_TCP, TCP_NODELAY, 1)) return errno;
  if (!set(IPPROTO_TCP, TCP_USER_TIMEOUT, manner.unacknowledged_max_ms)) return errno;
  if (bind(socket.get(), address.get(), address.length) != 0) return errno;
  if (listen(socket.get(), kWaitingMax) != 0) return errno;
  auto* const bound = reinterpret_cast<sockaddr*>(&address.storage);
  return getsockname(socket.get(), bound, &address.length) == 0 ? 0 : errno;
}

absl::Status Failure(const Address& address, int error) {
  return absl::ResourceExhaustedError(
      fmt::format("cannot listen on {}: {}", TextOf(address), ErrorText(error)));
}

/// Sets `was_taken` if a port that the system chose was not free on every address.
absl::StatusOr<TcpSockets> TryListen(std::vector<Address> addresses, const Manner& manner,
                                     bool& was_taken) {
  TcpSockets sockets;
  absl::Status missing = absl::InvalidArgumentError("the host has no address");
  for (Address& address : addresses) {
    const bool is_chosen = address.port() == 0 && sockets.port != 0;
    if (is_chosen) address.port() = htons(sockets.port);
    FileDescriptor socket;
    const int error = Listen(address, manner, socket);
    if (error != 0) {
      was_taken = is_chosen && error == EADDRINUSE;
      missing = Failure(address, error);
      if (!LacksIpv6(address, error)) return missing;
      continue;
    }
    sockets.port = ntohs(address.port());
    sockets.listening.push_back(std::move(socket));
    if (manner.takes_both_kinds) break;
  }
  if (sockets.listening.empty()) return missing;
  return sockets;
}

/// Returns the addresses for all of this machine: the first takes connections of both kinds, the
/// second is for machines without IPv6.
absl::StatusOr<std::vector<Address>> Wildcards(uint16_t port) {
  absl::StatusOr<std::vector<Address>> addresses = Resolve("::", port);
  absl::StatusOr<std::vector<Address>> ipv4 = Resolve("0.0.0.0", port);
  if (!addresses.ok() || !ipv4.ok()) return addresses.ok() ? ipv4.status() : addresses.status();
  addresses->push_back(ipv4->front());
  return addresses;
}

}  // namespace

absl::StatusOr<TcpSockets> ListenOnTcp(const std::string& host, uint16_t port,
                                       absl::Duration unacknowledged_max) {
  absl::StatusOr<std::vector<Address>> addresses = Resolve(WithoutBrackets(host), port);
  if (!addresses.ok()) return addresses.status();
  WarnOfOwnName(host, *addresses);
  const Manner manner = {
      .takes_both_kinds = std::ranges::any_of(*addresses, IsWildcard),
      .unacknowledged_max_ms = static_cast<int>(absl::ToInt64Milliseconds(unacknowledged_max))};
  if (manner.takes_both_kinds) addresses = Wildcards(port);
  if (!addresses.ok()) return addresses.status();
  for (int i = 1;; ++i) {
    bool was_taken = false;
    absl::StatusOr<TcpSockets> sockets = TryListen(*addresses, manner, was_taken);
    if (sockets.ok() || !was_taken || i == kPortTries) return sockets;
  }
}

}  // namespace slipstream
