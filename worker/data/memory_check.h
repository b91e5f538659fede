#ifndef SLIPSTREAM_WORKER_DATA_MEMORY_CHECK_H_
#define SLIPSTREAM_WORKER_DATA_MEMORY_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace slipstream {

/// Checks whether this process can still allocate `bytes` bytes for the data called `name`. Call it
/// before allocating: a system that promises more memory than it has later kills a process without
/// a message. Fails with RESOURCE_EXHAUSTED, naming both numbers. Sizes below 64 MiB always pass.
absl::Status CheckMemory(const std::string& name, uint64_t bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_MEMORY_CHECK_H_
