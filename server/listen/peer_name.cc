#include "server/listen/peer_name.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace slipstream {
namespace {

/// The first twelve of sixteen bytes for an IPv4 address that is mapped into IPv6.
std::string MappedPrefix() { return std::string(10, '\0') + "\xff\xff"; }

std::string MappedIpv4(const void* address) {
  return MappedPrefix() + std::string(static_cast<const char*>(address), sizeof(in_addr));
}

/// Decodes gRPC's "%5B::1%5D" to "[::1]".
std::string WithoutPercents(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool is_coded = text[i] == '%' && i + 2 < text.size() &&
                          std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    plain += is_coded ? static_cast<char>(byte) : text[i];
    if (is_coded) i += 2;
  }
  return plain;
}

}  // namespace

PeerName PeerNameOf(const FileDescriptor& connection) {
  sockaddr_storage peer = {};
  socklen_t length = sizeof(peer);
  if (getpeername(connection.get(), reinterpret_cast<sockaddr*>(&peer), &length) != 0) return {};
  if (peer.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(peer);
    return {MappedIpv4(&ipv4.sin_addr), ntohs(ipv4.sin_port)};
  }
  if (peer.ss_family != AF_INET6) return {};
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(peer);
  return {std::string(reinterpret_cast<const char*>(&ipv6.sin6_addr), sizeof(ipv6.sin6_addr)),
          ntohs(ipv6.sin6_port)};
}

PeerName PeerNameOf(std::string_view peer) {
  const bool is_ipv4 = peer.starts_with("ipv4:");
  if (!is_ipv4 && !peer.starts_with("ipv6:")) return {};
  const std::string text = WithoutPercents(peer.substr(5));
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon == std::string::npos) return {};
  const char* const text_end = text.data() + text.size();
  const auto [port_end, error] = std::from_chars(text.data() + colon + 1, text_end, port);
  if (error != std::errc() || port_end != text_end) return {};
  in6_addr address = {};
  if (is_ipv4) {
    if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &address) != 1) return {};
    return {MappedIpv4(&address), port};
  }
  // The zone in "[fe80::1%eth0]" is not part of the address.
  const size_t end = std::min(text.find('%'), text.find(']'));
  if (text.front() != '[' || end == std::string::npos) return {};
  if (inet_pton(AF_INET6, text.substr(1, end - 1).c_str(), &address) != 1) return {};
  return {std::string(reinterpret_cast<const char*>(&address), sizeof(address)), port};
}

std::string TextOf(const PeerName& name) {
  const auto& [address, port] = name;
  if (address.size() != sizeof(in6_addr)) return "?";
  const std::string prefix = MappedPrefix();
  const bool is_ipv4 = address.starts_with(prefix);
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(is_ipv4 ? AF_INET : AF_INET6, address.data() + (is_ipv4 ? prefix.size() : 0), text,
            sizeof(text));
  return is_ipv4 ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

}  // namespace slipstream
