#include "server/listen/tcp_listener.h"

#include "common/files/accept_connection.h"
#include "common/rpc/transport_options.h"
#include "server/listen/tcp_socket.h"

namespace slipstream {

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Listen(const std::string& host,
                                                                 uint16_t port) {
  absl::StatusOr<TcpSockets> sockets =
      ListenOnTcp(host, port, TransportOptions().keepalive_timeout);
  if (!sockets.ok()) return sockets.status();
  return std::unique_ptr<TcpListener>(
      new TcpListener(std::move(sockets->listening), sockets->port));
}

void TcpListener::GiveTo(grpc::ServerBuilder& builder,
                         const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials);
}

absl::Status TcpListener::Start(Connections* connections) {
  const auto take = [this](FileDescriptor connection, const FileDescriptor& listening) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listening.get();
    parameters.fd = connection.Release();
    acceptor_->HandleNewConnection(&parameters);
  };
  absl::StatusOr<std::unique_ptr<AcceptLoop>> loop =
      AcceptLoop::Start(std::move(listening_), AcceptConnection, take, connections);
  if (!loop.ok()) return loop.status();
  loop_ = *std::move(loop);
  return absl::OkStatus();
}

}  // namespace slipstream
