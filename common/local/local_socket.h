#ifndef SLIPSTREAM_COMMON_LOCAL_LOCAL_SOCKET_H_
#define SLIPSTREAM_COMMON_LOCAL_LOCAL_SOCKET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Sockets between processes of one machine, which avoid work that TCP would do needlessly.
///
/// The sockets' names are in Linux's abstract namespace: nothing lies in a file system, so a
/// process that is killed leaves nothing behind, and only processes in the same network namespace
/// find the socket. Such names have no permissions, so each end asks the kernel who the other one
/// is.
///
/// All sockets are non-blocking, are closed on exec, and have buffers of 1 MiB where the system
/// allows it. With Linux's default of 208 KiB both ends would take turns instead of working at the
/// same time.

/// Returns a name that nobody can guess, and that nobody else uses by chance.
std::string NewLocalName();

enum class LocalSocketKind : uint8_t {
  kStream,
  kMessages,  // Keeps the boundaries between messages.
};

/// Listens under `name`. RESOURCE_EXHAUSTED if it is in use or there are no sockets left.
absl::StatusOr<FileDescriptor> ListenLocally(const std::string& name,
                                             LocalSocketKind kind = LocalSocketKind::kStream);

/// Accepts a connection like AcceptConnection.
absl::StatusOr<FileDescriptor> AcceptLocally(const FileDescriptor& listening);

/// Connects to the socket `name`. NOT_FOUND if nobody listens: the server has gone, or is on
/// another machine or in another network namespace. UNAVAILABLE if the server does not accept
/// connections now.
absl::StatusOr<FileDescriptor> ConnectLocally(const std::string& name,
                                              LocalSocketKind kind = LocalSocketKind::kStream);

/// Returns PERMISSION_DENIED if the process at the other end belongs to another user, or if the
/// kernel does not say to whom.
absl::Status CheckSameUser(const FileDescriptor& connected);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_LOCAL_SOCKET_H_
