#include "deploy/psctl/node/node_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace slipstream {
namespace {

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

bool IsKnownToOthers(const std::string& name) {
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, nullptr, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (; found != nullptr; found = found->ai_next) {
    if (IsLoopback(*found->ai_addr)) return false;
  }
  return true;
}

std::string FirstAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool is_up = (one->ifa_flags & IFF_UP) != 0;
    if (!is_up || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if (IsLoopback(*one->ifa_addr)) continue;
    std::array<char, INET_ADDRSTRLEN> text = {};
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(*one->ifa_addr);
    if (inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size()) != nullptr) return text.data();
  }
  return "";
}

}  // namespace

std::string NodeHost() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) == 0 && IsKnownToOthers(name.data())) {
    return name.data();
  }
  const std::string address = FirstAddress();
  return address.empty() ? "localhost" : address;
}

}  // namespace slipstream
