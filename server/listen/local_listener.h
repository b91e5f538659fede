#ifndef SLIPSTREAM_SERVER_LISTEN_LOCAL_LISTENER_H_
#define SLIPSTREAM_SERVER_LISTEN_LOCAL_LISTENER_H_

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/listen/accept_loop.h"

namespace slipstream {

/// Lets processes of this machine and user reach a gRPC server through local sockets
/// (common/local/local_socket.h): each connection becomes one of the server's, with the same
/// bounds, probes and services as those over TCP. Processes of other users are turned away.
///
/// Thread-safe.
class LocalListener {
 public:
  /// Begins to accept. `server` must outlive the listener, and be shut down only after the listener
  /// is destroyed. Then nothing more is accepted, and accepted connections belong to the server.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Start(const std::string& name,
                                                              grpc::Server& server);

 private:
  explicit LocalListener(std::unique_ptr<AcceptLoop> loop) : loop_(std::move(loop)) {}

  const std::unique_ptr<AcceptLoop> loop_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_LOCAL_LISTENER_H_
