#include "common/local/local_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <system_error>

#include "common/base/check.h"
#include "common/files/accept_connection.h"

namespace slipstream {
namespace {

constexpr int kBufferBytes = 1 << 20;
// All workers of a machine connect at once when the model is known.
constexpr int kWaitingMax = SOMAXCONN;

std::string ErrorText(int error) { return std::generic_category().message(error); }

struct Address {
  sockaddr_un address = {};
  socklen_t length = 0;
};

/// Returns an abstract address: the path begins with a zero byte, and `length` says where it ends.
Address AbstractAddress(const std::string& name) {
  Address address;
  address.address.sun_family = AF_UNIX;
  PS_CHECK(name.size() + 1 <= sizeof(address.address.sun_path));
  std::memcpy(address.address.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

absl::StatusOr<FileDescriptor> NewSocket(LocalSocketKind kind) {
  const int type = kind == LocalSocketKind::kStream ? SOCK_STREAM : SOCK_SEQPACKET;
  FileDescriptor socket(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) {
    return absl::ResourceExhaustedError("cannot make a local socket: " + ErrorText(errno));
  }
  return socket;
}

/// Enlarges the buffer for sending, as the reader of a local socket takes bytes straight from the
/// sender's buffer. The system's own bound applies; a smaller buffer costs only speed.
void EnlargeBuffer(const FileDescriptor& socket) {
  (void)setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof(kBufferBytes));
}

}  // namespace

std::string NewLocalName() {
  std::random_device random;
  return fmt::format("slipstream-{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

absl::StatusOr<FileDescriptor> ListenLocally(const std::string& name, LocalSocketKind kind) {
  absl::StatusOr<FileDescriptor> socket = NewSocket(kind);
  if (!socket.ok()) return socket;
  const Address to = AbstractAddress(name);
  if (bind(socket->get(), reinterpret_cast<const sockaddr*>(&to.address), to.length) != 0 ||
      listen(socket->get(), kWaitingMax) != 0) {
    return absl::ResourceExhaustedError("cannot listen on a local socket: " + ErrorText(errno));
  }
  return socket;
}

absl::StatusOr<FileDescriptor> AcceptLocally(const FileDescriptor& listening) {
  absl::StatusOr<FileDescriptor> socket = AcceptConnection(listening);
  if (socket.ok()) EnlargeBuffer(*socket);
  return socket;
}

absl::StatusOr<FileDescriptor> ConnectLocally(const std::string& name, LocalSocketKind kind) {
  if (name.size() + 1 > sizeof(sockaddr_un::sun_path)) {
    return absl::NotFoundError("no local socket has so long a name");
  }
  absl::StatusOr<FileDescriptor> socket = NewSocket(kind);
  if (!socket.ok()) return socket;
  EnlargeBuffer(*socket);
  const Address to = AbstractAddress(name);
  // The kernel makes a local connection within this call, so there is nothing to wait for.
  if (connect(socket->get(), reinterpret_cast<const sockaddr*>(&to.address), to.length) == 0) {
    return socket;
  }
  if (errno == ECONNREFUSED) return absl::NotFoundError("nobody listens on the local socket");
  return absl::UnavailableError("cannot connect to the local socket: " + ErrorText(errno));
}

absl::Status CheckSameUser(const FileDescriptor& connected) {
  ucred peer = {};
  socklen_t length = sizeof(peer);
  if (getsockopt(connected.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return absl::PermissionDeniedError("the other end cannot be told: " + ErrorText(errno));
  }
  if (peer.uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "the process at the other end belongs to user {}, this one to {}", peer.uid, geteuid()));
}

}  // namespace slipstream
