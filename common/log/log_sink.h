#ifndef SLIPSTREAM_COMMON_LOG_LOG_SINK_H_
#define SLIPSTREAM_COMMON_LOG_LOG_SINK_H_

#include <spdlog/sinks/sink.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/allowance.h"
#include "common/base/log_line.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Writes the log to a file, and lets nobody who reads the log, or makes it grow, stop a program:
///
/// - A thread of its own writes. Whoever logs waits for its line to be written, so that no line is
///   lost however the process ends, but no longer than kPatience, and not at all while lines from
///   before still wait. What does not fit into kBytesMax then is left out.
/// - A peer may make a process log the same again and again. The lines of one kind, which are those
///   with the same words (log_line.h), are bounded: kLinesAtOnce, and kLinesPerSecond after that.
///   Debugging lines are not.
///
/// Once lines are written again, one of them tells how many were left out.
///
/// Thread-safe: guarded by its own mutexes.
class LogSink final : public spdlog::sinks::sink {
 public:
  static constexpr size_t kBytesMax = size_t{1} << 20;
  static constexpr std::chrono::milliseconds kPatience{100};
  static constexpr std::chrono::seconds kPatienceAtEnd{1};
  static constexpr double kLinesAtOnce = 500;
  static constexpr double kLinesPerSecond = 10;

  /// Counts of the lines that this process has logged, in all sinks.
  struct Counts {
    std::map<std::string, uint64_t> by_level;  // By "info", "warning" and so on: those written.
    uint64_t left_out = 0;
  };
  static Counts CountsOfProcess();

  /// `file` stays open for as long as the process lives. On a terminal, levels are coloured.
  explicit LogSink(int file);

  /// Waits for what is left to be written, at most for kPatienceAtEnd.
  ~LogSink() override;

  void log(const spdlog::details::log_msg& message) override;
  void flush() override {}
  void set_pattern(const std::string& pattern) override;
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override;

 private:
  /// The lines on their way. The thread that writes has a share in it: if the file takes nothing,
  /// it outlives the sink.
  struct Queue {
    Mutex mutex;
    CondVar changed;
    std::string text ABSL_GUARDED_BY(mutex);
    uint64_t accepted ABSL_GUARDED_BY(mutex) = 0;  // Bytes so far, of `text`, too.
    uint64_t written ABSL_GUARDED_BY(mutex) = 0;
    uint64_t left_out ABSL_GUARDED_BY(mutex) = 0;  // Lines since the last one that was accepted.
    bool is_behind ABSL_GUARDED_BY(mutex) = false;
    bool is_closed ABSL_GUARDED_BY(mutex) = false;
  };

  static void WriteAll(const std::shared_ptr<Queue>& queue, int file);
  std::string Format(const spdlog::details::log_msg& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Format(const spdlog::details::log_msg& like, const LogLine& line)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const bool has_colours_;
  const std::shared_ptr<Queue> queue_;

  // Taken before the queue's mutex, so that lines are queued in the order of their times.
  Mutex mutex_;
  std::unique_ptr<spdlog::formatter> formatter_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Allowance> allowances_ ABSL_GUARDED_BY(mutex_);  // By their words.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOG_LOG_SINK_H_
