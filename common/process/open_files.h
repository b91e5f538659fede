#ifndef SLIPSTREAM_COMMON_PROCESS_OPEN_FILES_H_
#define SLIPSTREAM_COMMON_PROCESS_OPEN_FILES_H_

#include <cstdint>

namespace slipstream {

/// Lets this process open as many files, connections among them, as it may at all: the soft limit,
/// often 1024, is for programs that call select(). Returns that limit.
uint64_t RaiseOpenFilesLimit();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_OPEN_FILES_H_
