#ifndef SLIPSTREAM_TESTS_SERVER_DATA_PLANE_GATED_DISK_H_
#define SLIPSTREAM_TESTS_SERVER_DATA_PLANE_GATED_DISK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "server/storage/disk.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {

/// A simulated disk that several threads may use, and that lets some files wait: while the gate is
/// closed for them, nobody reads or syncs them.
///
/// Thread-safe.
class GatedDisk final : public Disk {
 public:
  /// Closes the gate for files whose paths contain `part`, in place of those before.
  void Close(const std::string& part) {
    MutexLock lock(mutex_);
    closed_for_ = part;
    is_closed_ = true;
  }

  void Open() {
    MutexLock lock(mutex_);
    is_closed_ = false;
    changed_.NotifyAll();
  }

  /// Blocks until somebody waits at the gate.
  void AwaitSomebody() {
    MutexLock lock(mutex_);
    while (waiting_ == 0) changed_.Wait(mutex_);
  }

  /// The disk behind it. REQUIRES: no other thread uses this one.
  SimulatedDisk& disk() { return disk_; }

  /// Lets every call from now on fail, and opens the gate. To be followed by Crash.
  void StopMachine() {
    MutexLock lock(mutex_);
    disk_.StopAtCall(1);
    is_closed_ = false;
    changed_.NotifyAll();
  }

  absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& path) override {
    MutexLock lock(mutex_);
    absl::StatusOr<std::unique_ptr<DiskFile>> file = disk_.Create(path);
    if (!file.ok()) return file.status();
    return std::make_unique<File>(*this, path, *std::move(file));
  }
  absl::Status ReadAt(const std::string& path, uint64_t offset,
                      std::span<std::byte> bytes) override {
    MutexLock lock(mutex_);
    Pass(path);
    return disk_.ReadAt(path, offset, bytes);
  }
  absl::Status WriteAt(const std::string& path, uint64_t offset,
                       std::span<const std::byte> bytes) override {
    MutexLock lock(mutex_);
    return disk_.WriteAt(path, offset, bytes);
  }
  absl::Status Truncate(const std::string& path, uint64_t bytes) override {
    MutexLock lock(mutex_);
    return disk_.Truncate(path, bytes);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    MutexLock lock(mutex_);
    return disk_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override {
    MutexLock lock(mutex_);
    return disk_.Remove(path);
  }
  absl::StatusOr<std::vector<DiskEntry>> List(const std::string& directory) override {
    MutexLock lock(mutex_);
    return disk_.List(directory);
  }
  absl::Status MakeDirectories(const std::string& directory) override {
    MutexLock lock(mutex_);
    return disk_.MakeDirectories(directory);
  }
  absl::Status SyncDirectory(const std::string& directory) override {
    MutexLock lock(mutex_);
    return disk_.SyncDirectory(directory);
  }
  absl::StatusOr<std::unique_ptr<DiskLock>> Lock(const std::string& directory) override {
    MutexLock lock(mutex_);
    return disk_.Lock(directory);
  }

 private:
  class File final : public DiskFile {
   public:
    /// `disk` must outlive the file.
    File(GatedDisk& disk, std::string path, std::unique_ptr<DiskFile> file)
        : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}

    absl::Status Append(std::span<const std::span<const std::byte>> parts) override {
      MutexLock lock(disk_.mutex_);
      return file_->Append(parts);
    }
    absl::Status Sync() override {
      MutexLock lock(disk_.mutex_);
      disk_.Pass(path_);
      return file_->Sync();
    }

   private:
    GatedDisk& disk_;
    const std::string path_;
    const std::unique_ptr<DiskFile> file_;
  };

  void Pass(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++waiting_;
    changed_.NotifyAll();
    while (is_closed_ && path.find(closed_for_) != std::string::npos) changed_.Wait(mutex_);
    --waiting_;
  }

  Mutex mutex_;
  CondVar changed_;
  SimulatedDisk disk_;
  std::string closed_for_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_DATA_PLANE_GATED_DISK_H_
