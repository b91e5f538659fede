#ifndef SLIPSTREAM_COMMON_PROCESS_MEMORY_BYTES_H_
#define SLIPSTREAM_COMMON_PROCESS_MEMORY_BYTES_H_

#include <cstdint>
#include <string>

namespace slipstream {

/// The memory of a process, in bytes: the tightest of what the machine has and what each of its
/// control groups allows, its own and those around it. The largest number where the system does not
/// say.
struct MemoryBytes {
  /// In all, for this process and whoever shares its groups.
  uint64_t limit = 0;

  /// Of that, what it can still have without taking it from others. File pages that the system
  /// keeps only to be fast count as free.
  uint64_t available = 0;
};

/// As of now. `root` is where /proc and /sys are: tests put theirs elsewhere.
MemoryBytes ReadMemoryBytes(const std::string& root = "");

/// The bytes that this process can still have, as of now.
inline uint64_t AvailableMemoryBytes() { return ReadMemoryBytes().available; }

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_MEMORY_BYTES_H_
