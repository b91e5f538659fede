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

#include "common/files/accept_connection.h"

namespace slipstream {
namespace {

// All workers connect at once when a run begins.
constexpr int kWaitingMax = SOMAXCONN;

// A port that the system chose for one address may be taken for another.
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

bool IsWildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

absl::StatusOr<std::vector<Address>> Resolve(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        fmt::format("cannot listen on {}: {}", host, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Address address;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    // A name may be told of twice.
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  return addresses;
}

bool IsMissingHere(int error) { return error == EAFNOSUPPORT || error == EADDRNOTAVAIL; }

/// Binds with the port of `address`, and tells it which it got. An errno, or 0.
int Listen(Address& address, bool takes_both_kinds, FileDescriptor& socket) {
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  socket = FileDescriptor(::socket(address.family(), type, 0));
  if (!socket.is_open()) return errno;
  const auto set = [&](int level, int option, int value) {
    return setsockopt(socket.get(), level, option, &value, sizeof(value)) == 0;
  };
  // So that a server may come back while connections of the one before are still ending.
  if (!set(SOL_SOCKET, SO_REUSEADDR, 1)) return errno;
  const bool is_ipv6 = address.family() == AF_INET6;
  if (is_ipv6 && !set(IPPROTO_IPV6, IPV6_V6ONLY, takes_both_kinds ? 0 : 1)) return errno;
  if (bind(socket.get(), address.get(), address.length) != 0) return errno;
  if (listen(socket.get(), kWaitingMax) != 0) return errno;
  auto* const bound = reinterpret_cast<sockaddr*>(&address.storage);
  return getsockname(socket.get(), bound, &address.length) == 0 ? 0 : errno;
}

absl::Status Failure(const Address& address, int error) {
  return absl::ResourceExhaustedError(
      fmt::format("cannot listen on {}: {}", TextOf(address), ErrorText(error)));
}

/// `was_taken` tells whether a port that the system chose was not free everywhere.
absl::StatusOr<TcpSockets> TryListen(std::vector<Address> addresses, bool is_wildcard,
                                     bool& was_taken) {
  TcpSockets sockets;
  absl::Status missing = absl::InvalidArgumentError("the host has no address");
  for (Address& address : addresses) {
    const bool is_chosen = address.port() == 0 && sockets.port != 0;
    if (is_chosen) address.port() = htons(sockets.port);
    FileDescriptor socket;
    const int error = Listen(address, is_wildcard, socket);
    if (error != 0) {
      was_taken = is_chosen && error == EADDRINUSE;
      missing = Failure(address, error);
      if (!IsMissingHere(error)) return missing;
      continue;
    }
    sockets.port = ntohs(address.port());
    sockets.listening.push_back(std::move(socket));
    if (is_wildcard) break;  // It takes both kinds, unless it is of the lesser one.
  }
  if (sockets.listening.empty()) return missing;
  return sockets;
}

}  // namespace

absl::StatusOr<TcpSockets> ListenOnTcp(const std::string& host, uint16_t port) {
  const std::string name = WithoutBrackets(host);
  const bool is_wildcard = IsWildcard(name);
  std::vector<Address> addresses;
  // IPv6 first: its wildcard takes connections of both kinds.
  for (const std::string& one :
       is_wildcard ? std::vector<std::string>{"::", "0.0.0.0"} : std::vector<std::string>{name}) {
    absl::StatusOr<std::vector<Address>> resolved = Resolve(one, port);
    if (!resolved.ok()) return resolved.status();
    addresses.insert(addresses.end(), resolved->begin(), resolved->end());
  }
  for (int i = 1;; ++i) {
    bool was_taken = false;
    absl::StatusOr<TcpSockets> sockets = TryListen(addresses, is_wildcard, was_taken);
    if (sockets.ok() || !was_taken || i == kPortTries) return sockets;
  }
}

absl::StatusOr<FileDescriptor> AcceptTcp(const FileDescriptor& listening) {
  absl::StatusOr<FileDescriptor> socket = AcceptConnection(listening);
  if (!socket.ok()) return socket;
  constexpr int kOn = 1;
  (void)setsockopt(socket->get(), IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof(kOn));
  return socket;
}

}  // namespace slipstream
