#ifndef SLIPSTREAM_COMMON_SETTINGS_WORKER_SLOWDOWN_H_
#define SLIPSTREAM_COMMON_SETTINGS_WORKER_SLOWDOWN_H_

#include <string>

#include "absl/time/time.h"

namespace slipstream {

/// The slowdown of one worker, for experiments with uneven machines. The worker waits after it has
/// computed a mini-batch and before its gradient may count.
struct WorkerSlowdown {
  /// How much longer each mini-batch takes. In [0, 10 s].
  absl::Duration delay = absl::ZeroDuration();

  /// The factor by which the time to compute a mini-batch grows. In [1, 1000].
  double slower = 1;

  bool is_none() const { return *this == WorkerSlowdown(); }

  /// Returns how long the worker waits after a mini-batch that took `computed`.
  absl::Duration ExtraTime(absl::Duration computed) const {
    return delay + (slower - 1) * computed;
  }

  /// Returns "a mini-batch takes 4 times as long and 20ms longer". REQUIRES: !is_none().
  std::string ToText() const;

  friend bool operator==(const WorkerSlowdown&, const WorkerSlowdown&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_WORKER_SLOWDOWN_H_
