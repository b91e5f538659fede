#ifndef SLIPSTREAM_WORKER_CLIENT_RETRY_SCHEDULE_H_
#define SLIPSTREAM_WORKER_CLIENT_RETRY_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/philox.h"

namespace slipstream {

/// Waits for so long, or less if the program is to stop; returns false then.
using Sleeper = std::function<bool(absl::Duration)>;

struct RetryOptions {
  /// The first wait; each further one is twice as long up to `wait_max`. A wait is drawn between
  /// half of that and all of it, so that clients that failed together do not come back together.
  absl::Duration first_wait = absl::Milliseconds(50);
  absl::Duration wait_max = absl::Seconds(2);

  /// A peer that cannot be reached for this long is given up. Longer outlasts a restart.
  absl::Duration give_up_after = absl::Seconds(30);
};

/// When to repeat a call that failed: exponential backoff with jitter and an end. Time and chance
/// come from outside.
///
/// Not thread-safe: one owner.
class RetrySchedule {
 public:
  RetrySchedule(const RetryOptions& options, uint64_t seed, absl::Time start)
      : options_(options), start_(start), wait_(options.first_wait), random_(seed, 0) {}

  /// How long to wait before the next try; nothing to give up.
  std::optional<absl::Duration> Next(absl::Time now);

  /// For how long this has been tried.
  absl::Duration Elapsed(absl::Time now) const { return now - start_; }

 private:
  const RetryOptions options_;
  const absl::Time start_;
  absl::Duration wait_;
  RandomStream random_;
};

/// True if a call that failed so may succeed when it is made again: the peer was not reached, did
/// not answer in time, or the connection broke.
bool IsTransient(const absl::Status& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RETRY_SCHEDULE_H_
