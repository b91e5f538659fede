#ifndef SLIPSTREAM_WORKER_CLIENT_FIRST_FAILURE_H_
#define SLIPSTREAM_WORKER_CLIENT_FIRST_FAILURE_H_

#include "absl/status/status.h"

namespace slipstream {

/// The failure to report for a group of calls: the first one, where CANCELLED counts only if there
/// is no other. One failure cancels the remaining calls, and a cancelled call may return before the
/// call that failed.
///
/// Not thread-safe: one owner.
class FirstFailure {
 public:
  /// Records `status`; OK changes nothing.
  void Note(const absl::Status& status) {
    if (status.ok()) return;
    if (status_.ok() || absl::IsCancelled(status_)) status_ = status;
  }

  /// The failure, or OK if none was recorded.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_FIRST_FAILURE_H_
