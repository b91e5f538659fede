#ifndef SLIPSTREAM_SERVER_LISTEN_PEER_NAME_H_
#define SLIPSTREAM_SERVER_LISTEN_PEER_NAME_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/files/file_descriptor.h"

namespace slipstream {

/// The address and the port of the other end of a TCP connection. An address has sixteen bytes, and
/// IPv4 is as IPv6 maps it; it is empty for what is no TCP connection.
using PeerName = std::pair<std::string, uint16_t>;

/// Asks the socket.
PeerName PeerNameOf(const FileDescriptor& connection);

/// Reads what gRPC names a peer by, as "ipv4:192.0.2.1:7070" or "ipv6:%5B2001:db8::1%5D:7070".
PeerName PeerNameOf(std::string_view peer);

/// Writes it as people do: "192.0.2.1:7070", "[2001:db8::1]:7070".
std::string TextOf(const PeerName& name);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_PEER_NAME_H_
