#ifndef SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_H_
#define SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// A text file with one line for each push that used up its sequence, in the order of decisions.
/// Another program can recompute every staleness, vector clock and histogram from it. The fields
/// are worker, incarnation, sequence, base version, examples, mini-batch, outcome, staleness and
/// version. Excuses have 0 examples. `version` is the version that the push is part of; if it is
/// part of none (DROPPED_LATE, or a slot given up), it is the shard's current version.
///
/// The file is locked (flock) while it is written, so two processes never share one.
///
/// Not thread-safe: one owner, which serialises calls.
class PushLog {
 public:
  /// Makes (or empties) the file. Fails, naming the path and the cause. While another process
  /// writes the file, fails with RESOURCE_EXHAUSTED and changes nothing in it.
  static absl::StatusOr<PushLog> Create(const std::string& path);

  /// Adds a line for this push, which Flush will write.
  void Append(const PushHeader& header, const PushReply& reply);

  /// Hands the appended lines to the operating system. Fails, naming the path and the cause, for
  /// instance if the disk is full. Then the file ends with a whole line, and is not written to
  /// again.
  absl::Status Flush();

 private:
  PushLog(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  /// Cuts the file back to its last whole line.
  void CutBack(size_t written);

  std::string path_;
  FileDescriptor file_;
  std::string appended_;
  uint64_t bytes_ = 0;  // The size of the file's whole lines.
  absl::Status failure_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_H_
