#ifndef SLIPSTREAM_WORKER_DATA_MEMORY_CHECK_H_
#define SLIPSTREAM_WORKER_DATA_MEMORY_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace slipstream {

/// Whether this process can still have the `bytes` that data of `name` will take: to be asked
/// before they are, for a system that promises more than it has kills somebody later, without a
/// word. RESOURCE_EXHAUSTED names both numbers. What is small (less than 64 MiB) always passes.
absl::Status CheckMemory(const std::string& name, uint64_t bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_MEMORY_CHECK_H_
