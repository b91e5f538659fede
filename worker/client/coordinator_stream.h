#ifndef SLIPSTREAM_WORKER_CLIENT_COORDINATOR_STREAM_H_
#define SLIPSTREAM_WORKER_CLIENT_COORDINATOR_STREAM_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/raw_call.h"

namespace slipstream {

/// A stream of requests to the coordinator and its replies that stays open, because a message on it
/// costs the coordinator a fraction of the cost of a call. It opens with the first request, and
/// again after a failure. It retries by the same rules as the client's calls and in the end fails
/// in the same way.
///
/// Not thread-safe: one owner.
template <typename Request, typename Reply>
class CoordinatorStream {
 public:
  /// `coordinator` must outlive the stream.
  explicit CoordinatorStream(const CoordinatorClient& coordinator) : coordinator_(coordinator) {}

  /// Sends a request and returns the reply, which the coordinator may delay by up to `wait`.
  absl::StatusOr<Reply> Ask(const Request& request, absl::Duration wait);

  /// Sends a request whose reply is not needed. Returns the newest reply, to this request or an
  /// earlier one, if any arrives within `patience`.
  absl::StatusOr<std::optional<Reply>> Tell(const Request& request, absl::Duration patience);

 private:
  absl::StatusOr<std::optional<Reply>> Try(const Request& request, absl::Duration patience);

  /// Returns the newest of the replies that arrive by `deadline`. If the stream ended behind that
  /// reply, the next write reports it.
  absl::StatusOr<std::optional<Reply>> ReadNewest(absl::Time deadline);

  /// Finishes the call and returns why it is over; never OK.
  absl::Status End();

  const CoordinatorClient& coordinator_;
  std::unique_ptr<RawCall> call_;  // Null while no call is open.
};

using HeartbeatStream = CoordinatorStream<v1::HeartbeatRequest, v1::HeartbeatReply>;
using WorkStream = CoordinatorStream<v1::GetWorkRequest, v1::GetWorkReply>;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_COORDINATOR_STREAM_H_
