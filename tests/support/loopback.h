#ifndef SLIPSTREAM_TESTS_SUPPORT_LOOPBACK_H_
#define SLIPSTREAM_TESTS_SUPPORT_LOOPBACK_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace slipstream {

/// A server at 127.0.0.1. It does not use "localhost", which may mean two addresses (IPv4 and
/// IPv6): a port that is free at one of them may be in use at the other.
struct Loopback {
  std::unique_ptr<grpc::Server> server;  // Null if it cannot listen.
  int port = 0;

  std::string address() const { return "127.0.0.1:" + std::to_string(port); }
  std::shared_ptr<grpc::Channel> NewChannel() const {
    return grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  }
};

/// Serves `service`, which must outlive the server, on a port of the system's choice.
inline Loopback ServeOnLoopback(grpc::Service& service, grpc::ServerBuilder& builder) {
  Loopback loopback;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &loopback.port);
  builder.RegisterService(&service);
  loopback.server = builder.BuildAndStart();
  return loopback;
}

inline Loopback ServeOnLoopback(grpc::Service& service) {
  grpc::ServerBuilder builder;
  return ServeOnLoopback(service, builder);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_LOOPBACK_H_
