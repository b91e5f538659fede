#include "common/config/server_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace slipstream {
namespace {

constexpr size_t kHostBytesMax = 253;  // RFC 1035's bound for a name as text.

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexadecimal(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }
bool IsNamePart(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_'; }

bool IsHost(std::string_view host) {
  if (host.empty() || host.size() > kHostBytesMax) return false;
  if (host.front() == '[') {
    const std::string_view address = host.substr(1, host.size() - 2);
    return host.back() == ']' && address.find(':') != std::string_view::npos &&
           std::ranges::all_of(address,
                               [](char c) { return IsHexadecimal(c) || c == ':' || c == '.'; });
  }
  const bool has_empty_label = host.front() == '.' || host.find("..") != std::string_view::npos;
  return !has_empty_label &&
         std::ranges::all_of(host, [](char c) { return IsNamePart(c) || c == '.'; });
}

/// Reads one number of a dotted address and the dot after it.
bool TakeOctet(std::string_view& text) {
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + digits, value);
  const bool is_octet = digits > 0 && digits <= 3 && value <= 255;
  text.remove_prefix(digits);
  if (text.starts_with('.')) text.remove_prefix(1);
  return is_octet;
}

/// Reads the whole address, as a name may begin with 127., too.
bool IsLoopbackIpv4(std::string_view host) {
  if (!host.starts_with("127.") || std::ranges::count(host, '.') != 3 || host.ends_with('.')) {
    return false;
  }
  for (int i = 0; i < 4; ++i) {
    if (!TakeOctet(host)) return false;
  }
  return host.empty();
}

}  // namespace

bool ServerAddress::IsLoopback() const {
  return host == "localhost" || host == "[::1]" || IsLoopbackIpv4(host);
}

std::string ServerAddress::ToString() const { return host + ":" + std::to_string(port); }

namespace {

/// Returns why `text` is no address. REQUIRES: it is none.
std::string MisfitOf(std::string_view text) {
  if (const size_t scheme = text.find("://"); scheme != text.npos) {
    return fmt::format("as it begins with {}", text.substr(0, scheme + 3));
  }
  const size_t colon = text.rfind(':');
  if (colon == text.npos || text.ends_with(']')) return "as it has no port, for example :7070";
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.empty()) return "as it has no host";
  if (host.find(':') != host.npos && (host.front() != '[' || host.back() != ']')) {
    return "as an IPv6 address needs brackets, for example [::1]:7070";
  }
  if (!ParseServerAddress("localhost:" + std::string(port))) {
    return fmt::format("as its port, \"{}\", is no number in [1, 65535] without zeros before it",
                       port);
  }
  return fmt::format("as no host can be named \"{}\"", host);
}

}  // namespace

std::optional<ServerAddress> ParseServerAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  ServerAddress address;
  address.host = text.substr(0, colon);
  for (char& c : address.host) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::string_view port = text.substr(colon + 1);
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (parsed.ec != std::errc() || parsed.ptr != port.data() + port.size() || address.port == 0 ||
      port.front() == '0' || !IsHost(address.host)) {
    return std::nullopt;
  }
  return address;
}

std::optional<ServerAddress> ParseAddressToListenOn(std::string_view text) {
  const std::string_view zero = ":0";
  if (!text.ends_with(zero)) return ParseServerAddress(text);
  text.remove_suffix(zero.size());
  std::optional<ServerAddress> address = ParseServerAddress(std::string(text) + ":1");
  if (address.has_value()) address->port = 0;
  return address;
}

std::string AddressError(const std::string& text) {
  if (ParseServerAddress(text).has_value()) return "";
  return fmt::format("\"{}\" is not host:port, {}", text, MisfitOf(text));
}

}  // namespace slipstream
