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
/// <path>.<random>.unfinished, and is removed if this goes before; so readers find what
/// was there before or the new file, both whole, also after a crash or on a full disk. What a crash
/// leaves is for RemoveAbandonedFiles; until then it is locked (flock), where the file system can.
///
/// Failures are DATA_LOSS and name the path and the system's reason; after one, nothing under
/// `path` has changed, but for one case: if the directory cannot be brought to the disk, the new
/// file is in its place, and a crash of the machine may bring the old one back. A program that may
/// be under a limit on file sizes must ignore SIGXFSZ, as GuardedMain does, to hear of it.
///
/// Not thread-safe: one owner. Several may write the same path at once; the last to publish wins.
class WholeFile {
 public:
  /// Fails if the directory is missing or not writable, or if `path` is there and not a plain file:
  /// a device or a pipe must not be replaced by one.
  static absl::StatusOr<WholeFile> Create(const std::string& path);

  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&& other) = delete;
  ~WholeFile();

  /// Adds `bytes` at the end.
  absl::Status Append(std::span<const std::byte> bytes);

  /// Brings the bytes to the disk and the file to its name. Call once, last.
  absl::Status Publish();

 private:
  WholeFile(std::string path, std::string unfinished_path, FileDescriptor file);

  std::string path_;
  std::string unfinished_path_;  // Empty once there is nothing to remove.
  FileDescriptor file_;
};

/// Removes the unfinished files in `directory` that nobody goes on with: without a writer's lock,
/// and not written to for an hour, so that no writer is taken for dead whose lock cannot be seen
/// from this machine; for a day where there are no locks. What cannot be looked at or removed
/// stays.
void RemoveAbandonedFiles(const std::string& directory);

/// Makes `path` hold exactly `contents`, as a WholeFile.
absl::Status WriteWholeFile(const std::string& path, std::string_view contents);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_FILES_WHOLE_FILE_H_
