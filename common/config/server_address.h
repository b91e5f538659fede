#ifndef SLIPSTREAM_COMMON_CONFIG_SERVER_ADDRESS_H_
#define SLIPSTREAM_COMMON_CONFIG_SERVER_ADDRESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace slipstream {

/// The host:port of a server. The host is a name, an IPv4 address, or an IPv6 address in brackets.
struct ServerAddress {
  std::string host;  // In lower case, as names are the same in either case.
  uint16_t port = 0;

  /// Returns true for localhost, 127.0.0.0/8 and [::1]. Names are not looked up.
  bool IsLoopback() const;

  /// Returns true for 0.0.0.0 and [::], which stand for all addresses of a machine.
  bool IsWildcard() const { return host == "0.0.0.0" || host == "[::]"; }

  std::string ToString() const;
  friend bool operator==(const ServerAddress&, const ServerAddress&) = default;
};

/// Parses an address. Returns nothing if `text` is not host:port with a port in [1, 65535].
std::optional<ServerAddress> ParseServerAddress(std::string_view text);

/// Does the same for an address to listen on, where port 0 stands for any that is free.
std::optional<ServerAddress> ParseAddressToListenOn(std::string_view text);

/// Returns what is wrong with `text` as an address, for example in a flag; empty if nothing is.
std::string AddressError(const std::string& text);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_SERVER_ADDRESS_H_
