#ifndef SLIPSTREAM_WORKER_CLIENT_RETRY_SCHEDULE_H_
#define SLIPSTREAM_WORKER_CLIENT_RETRY_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/philox.h"
#include "common/process/steady_time.h"

namespace slipstream {

/// Waits for the given time and returns true; returns false early if the program is to stop.
using Sleeper = std::function<bool(absl::Duration)>;

/// Returns the current time. The time must never go back; its epoch does not matter.
using SteadyClock = std::function<absl::Time()>;

struct RetryOptions {
  /// The first wait; each further one is twice as long up to `wait_max`. A wait is drawn between
  /// half of that and all of it, so that clients that failed together do not come back together.
  absl::Duration first_wait = absl::Milliseconds(50);
  absl::Duration wait_max = absl::Seconds(2);

  /// A peer that cannot be reached for this long is given up. A longer time survives a restart of
  /// the peer.
  absl::Duration give_up_after = absl::Seconds(30);

  /// Tests replace it.
  SteadyClock now = SteadyNow;
};

/// Returns how long a member whose lease is `lease` tries to reach its run. A peer that is gone for
/// more than a few leases has also been noticed by the coordinator.
absl::Duration MembersPatience(absl::Duration lease);

/// Says when to repeat a call that failed: exponential back-off with jitter and an end. Time and
/// randomness come from outside.
///
/// Time is measured from construction, by the clock of the options.
///
/// Not thread-safe: one owner.
class RetrySchedule {
 public:
  RetrySchedule(const RetryOptions& options, uint64_t seed)
      : options_(options), start_(options.now()), wait_(options.first_wait), random_(seed, 0) {}

  /// Returns how long to wait before the next try after `failure`; nothing if the call is to be
  /// given up. An overloaded peer (RESOURCE_EXHAUSTED) gets the longest wait at once.
  std::optional<absl::Duration> Next(const absl::Status& failure);

  /// Returns the failure of a call that is given up: `message` and for how long it was tried. The
  /// code is RESOURCE_EXHAUSTED if that was the code of `failure`, else UNAVAILABLE.
  absl::Status GivenUp(const absl::Status& failure, absl::string_view message) const;

 private:
  const RetryOptions options_;
  const absl::Time start_;
  absl::Duration wait_;
  RandomStream random_;
};

/// True if a call that failed with `status` may succeed when it is repeated: the peer was not
/// reached, did not answer in time, was overloaded, or the connection broke.
bool IsTransient(const absl::Status& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RETRY_SCHEDULE_H_
