#ifndef SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_WRITER_H_
#define SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_WRITER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "server/storage/push_log.h"

namespace slipstream {

/// Writes a push log on a thread of its own, so that no update waits for a disk, not even for one
/// that hangs. A log that cannot be written ends, with a whole line, and training goes on without
/// it: lines after a gap would mislead the reader.
///
/// Thread-safe: guarded by its own mutex, which is never held while a file is written.
class PushLogWriter {
 public:
  /// The most lines that wait for the disk; if there are more, the log ends. A line has some 50
  /// bytes, and may have 64 ranges of mini-batches.
  static constexpr size_t kLinesMax = 65'536;

  explicit PushLogWriter(PushLog log);

  /// Writes the lines that are left, but waits for that no longer than `kEndTime`. A disk that
  /// hangs keeps its thread, and the file, until the process ends.
  ~PushLogWriter();
  PushLogWriter(const PushLogWriter&) = delete;
  PushLogWriter& operator=(const PushLogWriter&) = delete;

  static constexpr absl::Duration kEndTime = absl::Seconds(5);

  /// Adds the line of a push, as PushLog::Append does.
  void Add(absl::Time decided, const PushHeader& header, const PushReply& reply, uint32_t stage);

  /// Returns where and why the log has ended early, as PushLogEnd does; empty if it has not. Ends
  /// the log if a write has taken longer than `kEndTime`.
  std::string failure();

  /// Waits until all added lines are written or the log has ended, at most for `kEndTime`, after
  /// which it ends the log. Returns failure().
  std::string Finish();

  /// Returns the number of pushes that are known to be in the file.
  uint64_t pushes();

 private:
  struct Line {
    absl::Time decided;
    PushHeader header;
    PushReply reply;
    uint32_t stage = 0;
  };

  /// Shared with the thread, which may outlive the writer.
  struct State {
    explicit State(PushLog log) : path(log.path()), file(std::move(log)) {}

    const std::string path;

    Mutex mutex;
    CondVar changed;
    std::vector<Line> lines ABSL_GUARDED_BY(mutex);
    std::string failure ABSL_GUARDED_BY(mutex);
    uint64_t pushes ABSL_GUARDED_BY(mutex) = 0;

    /// When the thread began its current write; empty while it does not write.
    std::optional<std::chrono::steady_clock::time_point> writes_since ABSL_GUARDED_BY(mutex);
    bool is_stopping ABSL_GUARDED_BY(mutex) = false;
    bool has_stopped ABSL_GUARDED_BY(mutex) = false;

    PushLog file;  // Owned by the thread.
  };

  static void Run(State& state);

  /// Ends the log for this reason, after the pushes that are known to be written.
  static void GiveUp(State& state, const std::string& reason);

  /// Notes and logs the message about the end of the log, unless it has ended before.
  static void NoteEnd(State& state, const std::string& failure);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_PUSH_LOG_WRITER_H_
