#ifndef SLIPSTREAM_WORKER_TRAINING_COMPUTE_THREADS_H_
#define SLIPSTREAM_WORKER_TRAINING_COMPUTE_THREADS_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace slipstream {

/// The threads on which one worker computes at once: that of the caller, whose number is 0, and
/// others that wait for work in between.
///
/// Work of one number is always done by the same thread. oneDNN may keep the memory of a primitive
/// with the thread that has made it, so a plan is made, used and destroyed under one number.
///
/// Not thread-safe: one owner, whose thread is that of all calls.
class ComputeThreads {
 public:
  using Work = std::function<absl::Status(size_t thread)>;

  /// Starts count − 1 threads. Throws std::system_error if the system has no more. REQUIRES: count
  /// ≥ 1.
  explicit ComputeThreads(size_t count);
  ~ComputeThreads();
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

  size_t count() const { return threads_.size() + 1; }

  /// Calls `work` once on each thread, and returns when all calls have ended: a barrier. Returns
  /// the first failure, where CANCELLED counts only if there is no other. If a call throws, throws
  /// the first exception after all have ended.
  absl::Status Run(const Work& work);

 private:
  // The constructor delegates to it, so that the destructor ends the threads that there are if a
  // further one cannot be started.
  ComputeThreads() = default;

  void Serve(size_t thread);

  /// Does the work of one thread, and notes how it ended.
  void Do(const Work& work, size_t thread);

  Mutex mutex_;
  CondVar changed_;
  const Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;  // Calls of Run, each with other work.
  size_t working_ ABSL_GUARDED_BY(mutex_) = 0;  // Threads whose work goes on.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // Numbers 1 and up.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_COMPUTE_THREADS_H_
