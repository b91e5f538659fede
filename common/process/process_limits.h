#ifndef SLIPSTREAM_COMMON_PROCESS_PROCESS_LIMITS_H_
#define SLIPSTREAM_COMMON_PROCESS_PROCESS_LIMITS_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"

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

/// Room for the threads of one server or worker, most of which are gRPC's. gRPC ends the program
/// with SIGABRT if it cannot start one, so this is checked at the start.
inline constexpr uint64_t kThreadsNeeded = 64;

/// How many processes and threads may still be started, by the tightest limit: that of the user
/// (ulimit -u), which root does not have, or of a control group around this process (pids.max). The
/// largest number if nothing bounds them.
struct ThreadRoom {
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  uint64_t left = std::numeric_limits<uint64_t>::max();
  std::string name;  // Of the limit, as users know it.
};

/// Reads the current values. `root` is as above.
ThreadRoom ReadThreadRoom(const std::string& root = "");

/// Returns RESOURCE_EXHAUSTED, naming the limit, if there is no room for `needed` threads.
absl::Status CheckThreadRoom(uint64_t needed, const ThreadRoom& room = ReadThreadRoom());

/// Says that a thread could not be started, and which limit may be to blame.
std::string ThreadFailureText();

/// Ends the program with a line and kTemporary, as the system has no more memory for it. A server
/// has the allocator call this (also where nullptr could be dealt with): an exception would leave a
/// call of gRPC's half done.
[[noreturn]] void EndForLackOfMemory() noexcept;

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_PROCESS_LIMITS_H_
