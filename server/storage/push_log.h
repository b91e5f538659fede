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

/// A text file with one line per push that used up its sequence, in the order of decisions, from
/// which another program can recompute every staleness, vector clock and histogram: worker,
/// incarnation, sequence, base version, examples, mini-batch, outcome, staleness and version.
/// Excuses have 0 examples; `version` is the version the push is part of, of one that is part of
/// none (DROPPED_LATE, or a slot given up) the shard's current.
///
/// The file is locked (flock) while it is written, so two processes never share one.
///
/// Not thread-safe: one owner, which serialises calls.
class PushLog {
 public:
  /// Makes (or empties) the file. Fails naming the path and the cause; with RESOURCE_EXHAUSTED, and
  /// nothing in the file has changed, while another process writes it.
  static absl::StatusOr<PushLog> Create(const std::string& path);

  /// Adds a line to what Flush writes.
  void Append(const PushHeader& header, const PushReply& reply);

  /// Hands what was appended to the operating system. Fails naming the path and the cause, e.g. of
  /// a full disk: the file ends with a whole line then, and is not written to again.
  absl::Status Flush();

 private:
  PushLog(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  /// Cuts the file back to its last whole line.
  void CutBack(size_t written);

  std::string path_;
  FileDescriptor file_;
  std::string appended_;
  uint64_t bytes_ = 0;  // Of the file: whole lines.
  absl::Status failure_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_H_
