#ifndef SLIPSTREAM_SERVER_LISTEN_PEER_NAME_H_
#define SLIPSTREAM_SERVER_LISTEN_PEER_NAME_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/files/file_descriptor.h"

namespace slipstream {

/// The address and the port of the other end of a TCP connection. An address has sixteen bytes; an
/// IPv4 address is mapped into IPv6. The address is empty if this is not a TCP connection.
using PeerName = std::pair<std::string, uint16_t>;

/// Returns the peer's name as the socket knows it.
PeerName PeerNameOf(const FileDescriptor& connection);

/// Parses the name that gRPC gives a peer, such as "ipv4:192.0.2.1:7070" or
/// "ipv6:%5B2001:db8::1%5D:7070".
PeerName PeerNameOf(std::string_view peer);

/// Formats the name for people: "192.0.2.1:7070", "[2001:db8::1]:7070".
std::string TextOf(const PeerName& name);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_PEER_NAME_H_
