#ifndef SLIPSTREAM_SERVER_LISTEN_TCP_LISTENER_H_
#define SLIPSTREAM_SERVER_LISTEN_TCP_LISTENER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"
#include "server/listen/accept_loop.h"

namespace slipstream {

/// The port of a gRPC server. gRPC's own listener (1.51) never accepts again once this process had
/// no file for a connection, and lets connections take all files; AcceptLoop says what this
/// listener does instead. All that follows once a connection is accepted, including the handshake's
/// time limit, is left to gRPC.
///
/// Not thread-safe: one owner.
class TcpListener {
 public:
  /// Listens on all addresses of `host`, which is a name or an address (IPv6 in brackets), or on
  /// all addresses of this machine if it is 0.0.0.0 or [::]. For port 0 the system chooses a port.
  /// Connections wait until Start. Returns INVALID_ARGUMENT if the host has no address;
  /// RESOURCE_EXHAUSTED, naming the address and the cause, if an address cannot be listened on: it
  /// may be free later.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Listen(const std::string& host,
                                                             uint16_t port);

  uint16_t port() const { return port_; }

  /// Lets the server that `builder` makes take the connections.
  void GiveTo(grpc::ServerBuilder& builder,
              const std::shared_ptr<grpc::ServerCredentials>& credentials);

  /// Begins to accept, as far as `connections` has places; it may be null, and must outlive this
  /// object. The server must be shut down only after this object is destroyed. REQUIRES: GiveTo was
  /// called, and the server was started.
  absl::Status Start(Connections* connections);

 private:
  TcpListener(std::vector<FileDescriptor> listening, uint16_t port)
      : listening_(std::move(listening)), port_(port) {}

  std::vector<FileDescriptor> listening_;  // Empty from Start on.
  const uint16_t port_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<AcceptLoop> loop_;  // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_TCP_LISTENER_H_
