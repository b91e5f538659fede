#ifndef SLIPSTREAM_WORKER_CLIENT_RETRIES_H_
#define SLIPSTREAM_WORKER_CLIENT_RETRIES_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
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

/// The process that is called. Its owner may replace both parts between two tries of a call, if the
/// peer has gone to another address.
struct CalledPeer {
  /// For messages to people: "shard 1 at host:port".
  std::string name;

  /// Shows whether the peer's machine can be reached. Not null.
  std::shared_ptr<grpc::Channel> channel;
};

/// The tries of one call to one peer, repeated until the peer answers or is given up.
///
/// Not thread-safe: one owner.
class Retries {
 public:
  /// Everything that is borrowed must outlive this object.
  Retries(const CalledPeer& peer, const RetryOptions& options, uint64_t seed,
          const Sleeper& sleeper);

  /// Makes the call until it succeeds or fails permanently, and returns its last result; or, if the
  /// peer is given up, the failure of Await.
  absl::Status Persist(absl::FunctionRef<absl::Status()> call);

  // The parts of Persist, for callers that make the tries themselves:

  /// Notes that a try begins.
  void Begin() { begin_ = options_.now(); }

  /// Notes that the try has reached the peer, though it may have had to wait there: the peer is not
  /// unreachable.
  void OnReached();

  /// Waits before the next try. Not OK if no try may follow: CANCELLED if the program stops, or, if
  /// the peer has failed for too long, RESOURCE_EXHAUSTED for an overloaded peer and UNAVAILABLE
  /// for any other. REQUIRES: IsTransient(failure), and it is the failure of the latest try.
  absl::Status Await(const absl::Status& failure);

  /// Waits for as long as a reachable peer asks for; CANCELLED if the program stops.
  absl::Status AwaitFor(absl::Duration wait);

 private:
  absl::Status Pause(absl::Duration wait);

  // Constant after construction.
  const CalledPeer& peer_;
  const RetryOptions& options_;
  const uint64_t seed_;
  const Sleeper& sleeper_;

  absl::Time begin_;  // When the latest try began.
  // Empty unless the peer has failed since it was last reached.
  std::optional<RetrySchedule> schedule_;
  absl::Time failing_since_;  // Of meaning with a schedule.
  bool has_warned_ = false;   // Since then.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RETRIES_H_
