#ifndef SLIPSTREAM_WORKER_CORE_CALL_TRIES_H_
#define SLIPSTREAM_WORKER_CORE_CALL_TRIES_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/philox.h"

namespace slipstream {

struct RetryOptions {
  /// The first wait; each further one is twice as long up to `wait_max`. A wait is drawn between
  /// half of that and all of it, so that clients that failed together do not come back together.
  absl::Duration first_wait = absl::Milliseconds(50);
  absl::Duration wait_max = absl::Seconds(2);

  /// A peer that cannot be reached for this long is given up. A longer time survives a restart of
  /// the peer.
  absl::Duration give_up_after = absl::Seconds(30);
};

/// Returns how long a member whose lease is `lease` tries to reach its run. A peer that is gone for
/// more than a few leases has also been noticed by the coordinator.
absl::Duration MembersPatience(absl::Duration lease);

/// True if a call that failed with `status` may succeed when it is repeated: the peer was not
/// reached, did not answer in time, was overloaded, or the connection broke.
bool IsTransient(const absl::Status& status);

/// The wait before a call is repeated, and what people should be told of it.
struct Repetition {
  enum class News {
    kNone,
    kFirst,  // The peer has not failed since it was last reached.
    kLong,   // It has failed for longer than a process takes to start.
  };
  absl::Duration wait;
  News news = News::kNone;

  /// Set if the failed try had reached the peer, which had failed before.
  bool was_reached = false;

  /// How long after it was last reached a peer is given up.
  absl::Duration patience;
};

/// Decides when one call to one peer is repeated, and when the peer is given up: exponential
/// back-off with jitter and an end. An overloaded peer (RESOURCE_EXHAUSTED) gets the longest wait
/// at once.
///
/// All times are of one clock that never goes back.
///
/// Not thread-safe: one owner.
class CallTries {
 public:
  /// `seed`: of the jitter.
  CallTries(const RetryOptions& options, uint64_t seed) : options_(options), seed_(seed) {}

  /// Notes that a try begins.
  void OnBegin(absl::Time now) { begin_ = now; }

  /// Notes that the try has reached the peer, though it may have had to wait there. Returns whether
  /// the peer had failed before.
  bool OnReached();

  /// Notes that the try has failed. Fails if no other may follow: with `failure` itself if it is
  /// permanent; if the peer has failed for too long, with RESOURCE_EXHAUSTED for an overloaded peer
  /// and UNAVAILABLE for any other, and the message names it as `peer`.
  absl::StatusOr<Repetition> OnFailure(const absl::Status& failure, absl::string_view peer,
                                       absl::Time now);

 private:
  /// The failures since the peer was last reached.
  struct Failing {
    absl::Time since;
    absl::Duration next_wait;
    RandomStream random;
    bool was_told = false;  // That it takes long.
  };

  // Constant after construction.
  const RetryOptions options_;
  const uint64_t seed_;

  absl::Time begin_;  // When the latest try began.
  std::optional<Failing> failing_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_CALL_TRIES_H_
