#ifndef SLIPSTREAM_COMMON_FILES_WHOLE_FILE_H_
#define SLIPSTREAM_COMMON_FILES_WHOLE_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// A file that gets its name when it is complete. Until Publish it lies beside its place, as
/// <path>.<random>.unfinished, and it is removed if this object is destroyed before. So readers
/// find either the previous file or the new one, each whole, also after a crash or on a full disk.
/// The unfinished file is locked (flock) where the file system can do that. RemoveAbandonedFiles
/// removes what a crash leaves.
///
/// Failures are DATA_LOSS and name the path and the system's reason. After a failure nothing under
/// `path` has changed, with one exception: if the directory cannot be synced to the disk, the new
/// file is in its place, and a crash of the machine may bring the old one back. A program that may
/// be under a limit on file sizes must ignore SIGXFSZ, as GuardedMain does, to get an error
/// instead.
///
/// Not thread-safe: one owner. Several objects may write the same path at once; the last to publish
/// wins.
class WholeFile {
 public:
  /// Fails if the directory is missing or not writable, or if `path` exists and is no plain file: a
  /// device or a pipe must not be replaced by a file.
  static absl::StatusOr<WholeFile> Create(const std::string& path);

  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&& other) = delete;
  ~WholeFile();

  /// Adds `bytes` at the end.
  absl::Status Append(std::span<const std::byte> bytes);

  /// Syncs the bytes to the disk and gives the file its name. Call once, last.
  absl::Status Publish();

 private:
  WholeFile(std::string path, std::string unfinished_path, FileDescriptor file);

  std::string path_;
  std::string unfinished_path_;  // Empty once there is nothing to remove.
  FileDescriptor file_;
};

/// Removes the unfinished files in `directory` that no writer is going to complete: those without a
/// writer's lock that nobody has written to for an hour. The hour protects writers whose locks
/// cannot be seen from this machine; where there are no locks, it is a day. Files that cannot be
/// examined or removed stay.
void RemoveAbandonedFiles(const std::string& directory);

/// Makes `path` hold exactly `contents`, written as a WholeFile.
absl::Status WriteWholeFile(const std::string& path, std::string_view contents);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_FILES_WHOLE_FILE_H_
