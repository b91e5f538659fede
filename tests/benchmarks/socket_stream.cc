#include "tests/benchmarks/socket_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/benchmarks/child_process.h"

namespace slipstream::benchmarks {
namespace {

constexpr char kUnix[] = "unix:";

bool IsUnix(const std::string& address) { return address.starts_with(kUnix); }

union SocketAddress {
  sockaddr any;
  sockaddr_in ip;
  sockaddr_un path;
};

SocketAddress Parse(const std::string& address) {
  SocketAddress parsed;
  std::memset(&parsed, 0, sizeof parsed);
  if (IsUnix(address)) {
    const std::string path = address.substr(std::strlen(kUnix));
    Require(path.size() < sizeof parsed.path.sun_path, "too long: " + address);
    parsed.path.sun_family = AF_UNIX;
    std::memcpy(parsed.path.sun_path, path.c_str(), path.size() + 1);
    return parsed;
  }
  const size_t colon = address.find(':');
  Require(colon != std::string::npos, "no host:port: " + address);
  parsed.ip.sin_family = AF_INET;
  parsed.ip.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + colon + 1)));
  Require(inet_pton(AF_INET, address.substr(0, colon).c_str(), &parsed.ip.sin_addr) == 1,
          "no IPv4 address: " + address);
  return parsed;
}

socklen_t Size(const SocketAddress& address) {
  return address.any.sa_family == AF_UNIX ? sizeof address.path : sizeof address.ip;
}

FileDescriptor NewSocket(const std::string& address) {
  return FileDescriptor(socket(IsUnix(address) ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

void Tune(int socket, bool is_unix) {
  const int no_delay = 1;
  // TCP sizes its buffers itself. A Unix socket's default of 208 KiB would halve its rate.
  const int buffer_bytes = 4 << 20;
  if (is_unix) {
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  } else {
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
  }
}

}  // namespace

SocketStream::SocketStream(const std::string& address) : socket_(NewSocket(address)) {
  const SocketAddress peer = Parse(address);
  Require(connect(socket_.get(), &peer.any, Size(peer)) == 0, "cannot connect to " + address);
  Tune(socket_.get(), IsUnix(address));
}

SocketStream::SocketStream(FileDescriptor socket, bool is_unix) : socket_(std::move(socket)) {
  Tune(socket_.get(), is_unix);
}

bool SocketStream::Write(const void* data, size_t bytes) {
  const auto* next = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t written = send(socket_.get(), next, bytes, MSG_NOSIGNAL);
    if (written <= 0) return false;
    next += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool SocketStream::Read(void* data, size_t bytes) {
  auto* next = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t read = recv(socket_.get(), next, bytes, 0);
    if (read <= 0) return false;
    next += read;
    bytes -= static_cast<size_t>(read);
  }
  return true;
}

SocketListener::SocketListener(const std::string& address)
    : socket_(NewSocket(address)), is_unix_(IsUnix(address)), address_(address) {
  SocketAddress own = Parse(address);
  Require(bind(socket_.get(), &own.any, Size(own)) == 0 && listen(socket_.get(), SOMAXCONN) == 0,
          "cannot listen at " + address);
  if (is_unix_) return;
  socklen_t size = sizeof own;
  Require(getsockname(socket_.get(), &own.any, &size) == 0, "no port");
  address_ = address.substr(0, address.find(':') + 1) + std::to_string(ntohs(own.ip.sin_port));
}

SocketStream SocketListener::Accept() {
  FileDescriptor accepted(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  Require(accepted.is_open(), "accept");
  return {std::move(accepted), is_unix_};
}

}  // namespace slipstream::benchmarks
