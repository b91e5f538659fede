#ifndef SLIPSTREAM_WORKER_CLIENT_RETRIES_H_
#define SLIPSTREAM_WORKER_CLIENT_RETRIES_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/client/retry_schedule.h"

namespace slipstream {

/// The tries of one call to one peer, until it is answered or the peer is given up.
///
/// Not thread-safe: one owner.
class Retries {
 public:
  /// `peer` is for people, "shard at host:port", and `channel` leads to it. What is borrowed must
  /// outlive this.
  Retries(std::string_view peer, grpc::Channel& channel, const RetryOptions& options, uint64_t seed,
          const Sleeper& sleeper);

  /// Makes the call until it succeeds or fails for good, and returns what it returned last; or why
  /// it is not made again, as Await says.
  absl::Status Persist(absl::FunctionRef<absl::Status()> call);

  // Parts of Persist, for a call whose tries the caller makes:

  /// A try begins.
  void Begin() { begin_ = options_.now(); }

  /// The try has reached the peer, which let it wait: the peer is not away.
  void OnReached() { schedule_.reset(); }

  /// Waits before the next try. Not OK if there is to be none: CANCELLED if the program stops,
  /// UNAVAILABLE, or RESOURCE_EXHAUSTED of a peer with too much to do, if the peer has failed for
  /// too long. REQUIRES: IsTransient(failure), of the try that was begun last.
  absl::Status Await(const absl::Status& failure);

  /// Waits as long as the peer, which is there, asks for; CANCELLED if the program stops.
  absl::Status AwaitFor(absl::Duration wait);

 private:
  absl::Status Pause(absl::Duration wait);

  // Constant after construction.
  const std::string_view peer_;
  grpc::Channel& channel_;
  const RetryOptions& options_;
  const uint64_t seed_;
  const Sleeper& sleeper_;

  absl::Time begin_;                       // Of the last try.
  std::optional<RetrySchedule> schedule_;  // Since the peer was there last.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RETRIES_H_
