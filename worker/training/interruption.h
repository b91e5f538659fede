#ifndef SLIPSTREAM_WORKER_TRAINING_INTERRUPTION_H_
#define SLIPSTREAM_WORKER_TRAINING_INTERRUPTION_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/first_failure.h"

namespace slipstream {

/// The reason why the threads of a worker must end before the work is done: one of them failed, or
/// the process was asked to stop. The first failure counts. Failures of calls that were cancelled
/// for it do not count.
///
/// Thread-safe: guarded by its own mutex.
class Interruption {
 public:
  /// Interrupts all threads with failure `status`. REQUIRES: !status.ok().
  void Fail(const absl::Status& status);

  /// Interrupts all threads without a failure.
  void Stop();

  bool interrupted() const;

  /// The failure; OK if nothing failed, also if the worker was stopped.
  absl::Status failure() const;

  /// Waits for `duration` and returns true; returns false as soon as there is an interruption.
  bool Sleep(absl::Duration duration);

  /// The switch that an interruption throws, which cancels calls.
  CancelSwitch& cancel_switch() { return cancel_; }

 private:
  void Interrupt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  CancelSwitch cancel_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  FirstFailure failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_INTERRUPTION_H_
