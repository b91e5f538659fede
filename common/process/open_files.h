#ifndef SLIPSTREAM_COMMON_PROCESS_OPEN_FILES_H_
#define SLIPSTREAM_COMMON_PROCESS_OPEN_FILES_H_

#include <cstdint>

namespace slipstream {

/// Raises this process's limit on open files, which include connections, as far as is allowed. The
/// soft limit, often 1024, is for programs that call select(). Returns the new limit.
uint64_t RaiseOpenFilesLimit();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_OPEN_FILES_H_
