#ifndef SLIPSTREAM_SERVER_STORAGE_POSIX_DISK_H_
#define SLIPSTREAM_SERVER_STORAGE_POSIX_DISK_H_

#include <memory>
#include <string>
#include <vector>

#include "server/storage/disk.h"

namespace slipstream {

/// The file systems of this machine. A program that may be under a limit on file sizes must ignore
/// SIGXFSZ, as GuardedMain does, to get an error instead.
///
/// Thread-safe: without state.
class PosixDisk final : public Disk {
 public:
  absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& path) override;
  absl::Status ReadAt(const std::string& path, uint64_t offset,
                      std::span<std::byte> bytes) override;
  absl::Status WriteAt(const std::string& path, uint64_t offset,
                       std::span<const std::byte> bytes) override;
  absl::Status Truncate(const std::string& path, uint64_t bytes) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<DiskEntry>> List(const std::string& directory) override;
  absl::Status MakeDirectories(const std::string& directory) override;
  absl::Status SyncDirectory(const std::string& directory) override;
  std::optional<uint64_t> FreeBytes(const std::string& directory) override;
  absl::StatusOr<std::unique_ptr<DiskLock>> Lock(const std::string& directory) override;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_POSIX_DISK_H_
