#ifndef SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_H_
#define SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/files/file_descriptor.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// A text file with one line for each push that used up its sequence, in the order of decisions.
/// Another program can recompute every staleness, vector clock and histogram from it. README.md in
/// this folder explains the columns.
///
/// The file is locked (flock) while it is written, so two processes never share one.
///
/// Not thread-safe: one owner, which serialises calls.
class PushLog {
 public:
  /// Makes (or empties) the file. Fails, naming the path and the cause. While another process
  /// writes the file, fails with RESOURCE_EXHAUSTED and changes nothing in it.
  static absl::StatusOr<PushLog> Create(const std::string& path);

  /// Adds a line, which Flush will write, for a push. `decided` is the time of the shard's
  /// decision, and `stage` the stage of the run that the shard was in.
  void Append(absl::Time decided, const PushHeader& header, const PushReply& reply, uint32_t stage);

  /// Hands the appended lines to the operating system. Fails, for instance if the disk is full, and
  /// names the path, the number of pushes in the file and the cause. After a failure the file ends
  /// with a whole line and is not written to again.
  absl::Status Flush();

  const std::string& path() const { return path_; }

  /// Returns the number of pushes whose lines the operating system has taken.
  uint64_t pushes() const { return pushes_; }

 private:
  PushLog(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  /// Notes that the first `written` bytes of `appended_`, which are whole lines, are in the file.
  void CountLines(size_t written);

  /// Does the same if the last of these lines may be incomplete, and removes such a line from the
  /// file.
  void KeepWholeLines(size_t written);

  std::string path_;
  FileDescriptor file_;
  std::string appended_;
  uint64_t bytes_ = 0;   // The size of the file's whole lines.
  uint64_t pushes_ = 0;  // The number of lines without the heading.
  bool has_heading_ = false;
  absl::Status failure_;
};

/// Returns "the push log PATH ends after 7 pushes: REASON", the message about every early end.
std::string PushLogEnd(const std::string& path, uint64_t pushes, std::string_view reason);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_H_
