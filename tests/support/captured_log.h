#ifndef SLIPSTREAM_TESTS_SUPPORT_CAPTURED_LOG_H_
#define SLIPSTREAM_TESTS_SUPPORT_CAPTURED_LOG_H_

#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Keeps the lines that are logged while it lives, and keeps them from the terminal. It must
/// outlive every thread that logs.
///
/// Thread-safe.
class CapturedLog {
 public:
  CapturedLog() : sink_(std::make_shared<Sink>()), before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("captured", sink_));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  /// Returns the number of lines that contain `text`.
  int Count(const std::string& text) { return sink_->Count(text); }

  /// Blocks until a line contains `text`; fails the test if none does within a minute.
  void WaitFor(const std::string& text) { sink_->WaitFor(text); }

 private:
  class Sink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    int Count(const std::string& text) {
      MutexLock lock(lines_mutex_);
      return CountLocked(text);
    }
    void WaitFor(const std::string& text) {
      MutexLock lock(lines_mutex_);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      while (CountLocked(text) == 0) {
        if (arrived_.WaitUntil(lines_mutex_, deadline)) continue;
        ADD_FAILURE() << "no line of the log has: " << text;
        return;
      }
    }

   private:
    void sink_it_(const spdlog::details::log_msg& line) override {
      MutexLock lock(lines_mutex_);
      lines_.emplace_back(line.payload.data(), line.payload.size());
      arrived_.NotifyAll();
    }
    void flush_() override {}

    int CountLocked(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lines_mutex_) {
      return static_cast<int>(
          std::count_if(lines_.begin(), lines_.end(),
                        [&text](const std::string& line) { return line.find(text) != line.npos; }));
    }

    Mutex lines_mutex_;
    CondVar arrived_;
    std::vector<std::string> lines_ ABSL_GUARDED_BY(lines_mutex_);
  };

  const std::shared_ptr<Sink> sink_;
  const std::shared_ptr<spdlog::logger> before_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_CAPTURED_LOG_H_
