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

/// The tries of one call to one peer, repeated until the peer answers or is given up.
///
/// Not thread-safe: one owner.
class Retries {
 public:
  /// `peer` is for messages to people, "shard at host:port", and `channel` leads to it. Everything
  /// that is borrowed must outlive this object.
  Retries(std::string_view peer, grpc::Channel& channel, const RetryOptions& options, uint64_t seed,
          const Sleeper& sleeper);

  /// Makes the call until it succeeds or fails permanently, and returns its last result; or, if the
  /// peer is given up, the failure of Await.
  absl::Status Persist(absl::FunctionRef<absl::Status()> call);

  // The parts of Persist, for callers that make the tries themselves:

  /// Notes that a try begins.
  void Begin() { begin_ = options_.now(); }

  /// Notes that the try has reached the peer and only had to wait there: the peer is not
  /// unreachable.
  void OnReached() { schedule_.reset(); }

  /// Waits before the next try. Not OK if no try may follow: CANCELLED if the program stops, or, if
  /// the peer has failed for too long, RESOURCE_EXHAUSTED for an overloaded peer and UNAVAILABLE
  /// for any other. REQUIRES: IsTransient(failure), and it is the failure of the latest try.
  absl::Status Await(const absl::Status& failure);

  /// Waits for as long as a reachable peer asks for; CANCELLED if the program stops.
  absl::Status AwaitFor(absl::Duration wait);

 private:
  absl::Status Pause(absl::Duration wait);

  // Constant after construction.
  const std::string_view peer_;
  grpc::Channel& channel_;
  const RetryOptions& options_;
  const uint64_t seed_;
  const Sleeper& sleeper_;

  absl::Time begin_;  // When the latest try began.
  // Empty unless the peer has failed since it was last reached.
  std::optional<RetrySchedule> schedule_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RETRIES_H_
