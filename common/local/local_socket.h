#ifndef SLIPSTREAM_COMMON_LOCAL_LOCAL_SOCKET_H_
#define SLIPSTREAM_COMMON_LOCAL_LOCAL_SOCKET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Sockets between processes of one machine, for which TCP would do needless work.
///
/// Their names are in Linux' abstract namespace: nothing lies in a file system, so a process that
/// is killed leaves nothing behind, and only processes in the same network namespace find it. As
/// such names have no permissions, each end asks the kernel who the other one is.
///
/// All sockets are non-blocking, are closed on exec, and have buffers of 1 MiB where the system
/// allows it: with Linux' usual ones of 208 KiB both ends would take turns instead of working at
/// the same time.

/// A name that nobody can guess or happens to use as well.
std::string NewLocalName();

enum class LocalSocketKind : uint8_t {
  kStream,
  kMessages,  // Keeps apart what was sent apart.
};

/// RESOURCE_EXHAUSTED if the name is in use or there are no sockets left.
absl::StatusOr<FileDescriptor> ListenLocally(const std::string& name,
                                             LocalSocketKind kind = LocalSocketKind::kStream);

/// As AcceptConnection.
absl::StatusOr<FileDescriptor> AcceptLocally(const FileDescriptor& listening);

/// NOT_FOUND if nobody listens: the server has gone, or is on another machine or in another network
/// namespace. UNAVAILABLE if it does not accept now.
absl::StatusOr<FileDescriptor> ConnectLocally(const std::string& name,
                                              LocalSocketKind kind = LocalSocketKind::kStream);

/// PERMISSION_DENIED if the process at the other end belongs to another user.
absl::Status CheckSameUser(const FileDescriptor& connected);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_LOCAL_SOCKET_H_
