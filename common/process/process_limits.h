#ifndef SLIPSTREAM_COMMON_PROCESS_PROCESS_LIMITS_H_
#define SLIPSTREAM_COMMON_PROCESS_PROCESS_LIMITS_H_

#include <cstdint>
#include <string>

namespace slipstream {

/// The memory of a process, in bytes: the tightest of the machine's memory and of the limits of its
/// control groups, its own and those around it. The largest number if the system does not say.
struct MemoryBytes {
  /// The limit for this process together with all others in its groups.
  uint64_t limit = 0;

  /// The part of the limit that the process can still take without taking it from others. File
  /// pages that the system keeps only to be fast count as free.
  uint64_t available = 0;
};

/// Reads the current values. `root` is the directory of /proc and /sys, which tests put elsewhere.
MemoryBytes ReadMemoryBytes(const std::string& root = "");

/// Returns the bytes that this process can still take now.
inline uint64_t AvailableMemoryBytes() { return ReadMemoryBytes().available; }

/// Raises this process's limit on open files, which include connections, as far as is allowed. The
/// soft limit, often 1024, is for programs that call select(). Returns the new limit.
uint64_t RaiseOpenFilesLimit();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_PROCESS_LIMITS_H_
