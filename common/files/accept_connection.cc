#include "common/files/accept_connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace slipstream {

absl::StatusOr<FileDescriptor> AcceptConnection(const FileDescriptor& listening) {
  FileDescriptor socket(accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) return socket;
  const int error = errno;
  const bool is_full = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
  const std::string text = "accept: " + std::generic_category().message(error);
  return is_full ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

}  // namespace slipstream
