#ifndef SLIPSTREAM_COMMON_FILES_ACCEPT_CONNECTION_H_
#define SLIPSTREAM_COMMON_FILES_ACCEPT_CONNECTION_H_

#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// The next connection that waits at a socket of any kind; it does not block, and is closed on
/// exec. UNAVAILABLE if there is none, RESOURCE_EXHAUSTED if this process may open nothing more;
/// both may pass.
absl::StatusOr<FileDescriptor> AcceptConnection(const FileDescriptor& listening);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_FILES_ACCEPT_CONNECTION_H_
