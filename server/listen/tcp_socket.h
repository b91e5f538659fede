#ifndef SLIPSTREAM_SERVER_LISTEN_TCP_SOCKET_H_
#define SLIPSTREAM_SERVER_LISTEN_TCP_SOCKET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Sockets that listen on one port, one for each address. They do not block, and are closed on
/// exec. Data written to a connection that is accepted from them is sent at once (TCP_NODELAY).
struct TcpSockets {
  std::vector<FileDescriptor> listening;
  uint16_t port = 0;
};

/// Listens on all addresses of `host`, which is a name or an address (IPv6 in brackets); 0.0.0.0
/// and [::] are all addresses of this machine, of both kinds. For port 0 the system chooses a port.
/// Where there is no IPv6, IPv6 addresses are left out. A connection is broken if its peer has
/// acknowledged nothing of what was sent for `unacknowledged_max`: a call with bytes under way
/// could not be ended otherwise.
///
/// Returns INVALID_ARGUMENT if the host is not known; RESOURCE_EXHAUSTED, naming the host or the
/// address and the cause, if the failure may pass.
absl::StatusOr<TcpSockets> ListenOnTcp(const std::string& host, uint16_t port,
                                       absl::Duration unacknowledged_max);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_TCP_SOCKET_H_
