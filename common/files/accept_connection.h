#ifndef SLIPSTREAM_COMMON_FILES_ACCEPT_CONNECTION_H_
#define SLIPSTREAM_COMMON_FILES_ACCEPT_CONNECTION_H_

#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Accepts the next connection that waits at a socket of any kind. The result does not block, and
/// is closed on exec. UNAVAILABLE if no connection waits, RESOURCE_EXHAUSTED if there are no
/// descriptors or memory left for one; a later call may succeed after either.
absl::StatusOr<FileDescriptor> AcceptConnection(const FileDescriptor& listening);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_FILES_ACCEPT_CONNECTION_H_
