#ifndef SLIPSTREAM_WORKER_CLIENT_FIRST_FAILURE_H_
#define SLIPSTREAM_WORKER_CLIENT_FIRST_FAILURE_H_

#include "absl/status/status.h"

namespace slipstream {

/// The failure that others follow from: the first, but CANCELLED only if there is no other. One
/// failure ends all calls, and those it ended may be faster to return.
///
/// Not thread-safe: one owner.
class FirstFailure {
 public:
  /// OK changes nothing.
  void Note(const absl::Status& status) {
    if (status.ok()) return;
    if (status_.ok() || absl::IsCancelled(status_)) status_ = status;
  }

  /// OK if none was noted.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_FIRST_FAILURE_H_
