#ifndef SLIPSTREAM_TESTS_SUPPORT_SILENT_PORT_H_
#define SLIPSTREAM_TESTS_SUPPORT_SILENT_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "common/base/check.h"

namespace slipstream {

/// A port of 127.0.0.1 that refuses connections, reserved for as long as this object lives.
///
/// The socket is bound, so the system gives the port to nobody else, and does not listen, so
/// connecting to it fails at once. A gRPC server of this user may still begin to listen there,
/// since both sockets allow the port to be shared.
///
/// Thread-safe: const after construction.
class SilentPort {
 public:
  SilentPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    PS_CHECK(setsockopt(socket_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    PS_CHECK(bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    PS_CHECK(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentPort() { close(socket_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  const std::string& address() const { return address_; }

 private:
  const int socket_;
  std::string address_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_SILENT_PORT_H_
