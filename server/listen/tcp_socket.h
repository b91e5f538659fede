#ifndef SLIPSTREAM_SERVER_LISTEN_TCP_SOCKET_H_
#define SLIPSTREAM_SERVER_LISTEN_TCP_SOCKET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Sockets that listen on one port, one for each address; they do not block, and are closed on
/// exec, as are those that are accepted from them.
struct TcpSockets {
  std::vector<FileDescriptor> listening;
  uint16_t port = 0;
};

/// On all addresses of `host`, which is a name or an address, IPv6 in brackets; 0.0.0.0 and [::]
/// are all of this machine, of both kinds. Port 0: one that the system chooses. An address of a
/// kind that this machine does not have is left out. INVALID_ARGUMENT if the host is not known,
/// RESOURCE_EXHAUSTED, naming address and cause, if an address cannot be listened on.
absl::StatusOr<TcpSockets> ListenOnTcp(const std::string& host, uint16_t port);

/// As AcceptConnection; what is written to the connection leaves at once.
absl::StatusOr<FileDescriptor> AcceptTcp(const FileDescriptor& listening);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_TCP_SOCKET_H_
