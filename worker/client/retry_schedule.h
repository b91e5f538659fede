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

/// Waits for so long, or less if the program is to stop; returns false then.
using Sleeper = std::function<bool(absl::Duration)>;

/// What time it is. It must never go back; the epoch does not matter.
using SteadyClock = std::function<absl::Time()>;

struct RetryOptions {
  /// The first wait; each further one is twice as long up to `wait_max`. A wait is drawn between
  /// half of that and all of it, so that clients that failed together do not come back together.
  absl::Duration first_wait = absl::Milliseconds(50);
  absl::Duration wait_max = absl::Seconds(2);

  /// A peer that cannot be reached for this long is given up. Longer outlasts a restart.
  absl::Duration give_up_after = absl::Seconds(30);

  /// Tests have one of their own.
  SteadyClock now = SteadyNow;
};

/// For how long a member whose lease is `lease` tries to reach its run: a peer that is gone for
/// longer than a few leases has been noticed by the coordinator, too.
absl::Duration MembersPatience(absl::Duration lease);

/// When to repeat a call that failed: exponential backoff with jitter and an end. Time and chance
/// come from outside.
///
/// Time goes by the options' clock, from construction.
///
/// Not thread-safe: one owner.
class RetrySchedule {
 public:
  RetrySchedule(const RetryOptions& options, uint64_t seed)
      : options_(options), start_(options.now()), wait_(options.first_wait), random_(seed, 0) {}

  /// How long to wait before the next try of what failed with `failure`; nothing to give up. Who
  /// has too much to do (RESOURCE_EXHAUSTED) waits as long as it ever would.
  std::optional<absl::Duration> Next(const absl::Status& failure);

  /// What a call that is given up fails with: `message` and for how long it was tried, as
  /// UNAVAILABLE, or RESOURCE_EXHAUSTED if it was `failure`.
  absl::Status GivenUp(const absl::Status& failure, absl::string_view message) const;

 private:
  const RetryOptions options_;
  const absl::Time start_;
  absl::Duration wait_;
  RandomStream random_;
};

/// True if a call that failed so may succeed when it is made again: the peer was not reached, did
/// not answer in time, had too much to do, or the connection broke.
bool IsTransient(const absl::Status& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RETRY_SCHEDULE_H_
