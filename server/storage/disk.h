#ifndef SLIPSTREAM_SERVER_STORAGE_DISK_H_
#define SLIPSTREAM_SERVER_STORAGE_DISK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace slipstream {

/// A new file that is being written. It is closed when this object is destroyed.
///
/// Not thread-safe: one owner.
class DiskFile {
 public:
  virtual ~DiskFile() = default;

  /// Adds the parts at the end, one after another, straight from where they lie. After a failure
  /// some of their bytes may be there. The disk may take bytes before Sync, in any order.
  virtual absl::Status Append(std::span<const std::span<const std::byte>> parts) = 0;
  absl::Status Append(std::span<const std::byte> bytes) { return Append({&bytes, 1}); }

  /// Returns once the bytes are on the disk. After a failure nobody knows which of them are, also
  /// if a later call succeeds: give the file up.
  virtual absl::Status Sync() = 0;
};

/// Holds a directory's lock until it is destroyed, or the process ends in whatever way.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
};

/// A file or directory within a directory.
struct DiskEntry {
  std::string name;
  bool is_directory = false;
  uint64_t bytes = 0;  // The size of a file.

  friend bool operator==(const DiskEntry&, const DiskEntry&) = default;
};

/// The file system, as far as the storage of servers uses it: PosixDisk in a program, and a
/// simulated one that crashes, fills up and fails in tests.
///
/// A crash of the machine may undo whatever was not synced: the bytes of a file until DiskFile's
/// Sync, and new, renamed and removed names until SyncDirectory of the directory that has them.
///
/// Failures name the path and the system's reason. They are DATA_LOSS, and NOT_FOUND if there is no
/// such file or directory.
///
/// Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;

  /// Makes an empty file. Fails if the name is taken.
  virtual absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& path) = 0;

  /// Fills `bytes` with those of the file from `offset` on. Fails if the file ends before.
  virtual absl::Status ReadAt(const std::string& path, uint64_t offset,
                              std::span<std::byte> bytes) = 0;

  /// Writes `bytes` over those of the file from `offset` on. They are on the disk when this returns
  /// OK. After a failure some of them may be there.
  /// REQUIRES: the file has so many.
  virtual absl::Status WriteAt(const std::string& path, uint64_t offset,
                               std::span<const std::byte> bytes) = 0;

  /// Cuts off all bytes of a file but the first `bytes`. That is on the disk when this returns.
  /// Bytes whose Sync has failed need not be: the system may take them for written.
  /// REQUIRES: the file has so many.
  virtual absl::Status Truncate(const std::string& path, uint64_t bytes) = 0;

  /// Gives a file or directory another name. Fails if that is a directory with files.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;

  /// Removes a file, or an empty directory.
  virtual absl::Status Remove(const std::string& path) = 0;

  /// Returns what a directory has, by name. A link is no directory and has no bytes, whatever it
  /// leads to.
  virtual absl::StatusOr<std::vector<DiskEntry>> List(const std::string& directory) = 0;

  /// Makes the directory, and those above it, where they are missing. The names of new ones are on
  /// the disk when this returns.
  virtual absl::Status MakeDirectories(const std::string& directory) = 0;

  /// Returns once the names in the directory are on the disk.
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;

  /// Returns how many bytes more the directory's file system takes; nothing if it does not say.
  virtual std::optional<uint64_t> FreeBytes(const std::string& /*directory*/) {
    return std::nullopt;
  }

  /// Takes the directory's lock, for which it has a file LOCK. RESOURCE_EXHAUSTED if somebody else
  /// has it. On a file system without locks the directory counts as free.
  virtual absl::StatusOr<std::unique_ptr<DiskLock>> Lock(const std::string& directory) = 0;
};

/// The name of a directory's file for its lock.
inline constexpr char kLockName[] = "LOCK";

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_DISK_H_
