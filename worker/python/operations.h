#ifndef SLIPSTREAM_WORKER_PYTHON_OPERATIONS_H_
#define SLIPSTREAM_WORKER_PYTHON_OPERATIONS_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Something that another thread does: whether it is over, and how it ended.
///
/// Thread-safe: guarded by its own mutex.
class Operation {
 public:
  /// Waits for the end, up to `timeout`. Returns whether it is over.
  bool Wait(absl::Duration timeout);

  bool is_over() const { return is_over_; }

  /// REQUIRES: it is over.
  absl::Status status() const;

  void End(absl::Status status);

 private:
  std::atomic<bool> is_over_{false};
  mutable Mutex mutex_;
  CondVar changed_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

/// Does one thing after another on a thread of its own. So whoever asked for it can wait for a
/// short time, look whether a signal has come, and wait on. Both sides stay awake for half a
/// millisecond, and yield the processor meanwhile: a wake-up costs more than an exchange of a small
/// model.
///
/// Thread-safe: guarded by its own mutex.
class Operations {
 public:
  Operations() : thread_([this] { Run(); }) {}

  /// Drops what has not begun (CANCELLED), and waits for what has.
  ~Operations();
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  /// Begins `work` once everything before it is over.
  std::shared_ptr<Operation> Begin(std::function<absl::Status()> work);

 private:
  struct Task {
    std::function<absl::Status()> work;
    std::shared_ptr<Operation> operation;
  };

  void Run();

  std::atomic<bool> has_work_{false};  // Set by Begin; a hint to a thread that stays awake.
  Mutex mutex_;
  CondVar changed_;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_PYTHON_OPERATIONS_H_
