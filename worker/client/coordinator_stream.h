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

/// A stream of questions to the coordinator and its answers that stays open: a message costs the
/// coordinator a fraction of what a call does. It opens with the first question and again after a
/// failure, as persistently as the client makes its calls and with the same failure in the end.
///
/// Not thread-safe: one owner.
template <typename Request, typename Reply>
class CoordinatorStream {
 public:
  /// `coordinator` must outlive it.
  explicit CoordinatorStream(const CoordinatorClient& coordinator) : coordinator_(coordinator) {}

  /// The answer, which the coordinator may delay by `wait`.
  absl::StatusOr<Reply> Ask(const Request& request, absl::Duration wait);

  /// For questions that need no answer: the newest one, to this question or an earlier, if any
  /// comes within `patience`.
  absl::StatusOr<std::optional<Reply>> Tell(const Request& request, absl::Duration patience);

 private:
  absl::StatusOr<std::optional<Reply>> Try(const Request& request, absl::Duration patience);

  /// The newest of the replies that have come by then. What else has come behind it, an end, shows
  /// when something is written.
  absl::StatusOr<std::optional<Reply>> ReadNewest(absl::Time deadline);

  /// Why the call is over; never OK.
  absl::Status End();

  const CoordinatorClient& coordinator_;
  std::unique_ptr<RawCall> call_;  // Null while none is open.
};

using HeartbeatStream = CoordinatorStream<v1::HeartbeatRequest, v1::HeartbeatReply>;
using WorkStream = CoordinatorStream<v1::GetWorkRequest, v1::GetWorkReply>;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_COORDINATOR_STREAM_H_
