#ifndef SLIPSTREAM_WORKER_CLIENT_COORDINATOR_STREAM_H_
#define SLIPSTREAM_WORKER_CLIENT_COORDINATOR_STREAM_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordinator.grpc.pb.h"
#include "worker/client/coordinator_client.h"

namespace slipstream {

/// A stream of questions to the coordinator and its answers that stays open: a message costs the
/// coordinator a fraction of what a call does. It opens with the first question and again after a
/// failure, as persistently as the client makes its calls and with the same failure in the end.
///
/// It waits on a completion queue of its own, so that the calling thread itself moves the bytes.
///
/// Not thread-safe: one owner.
template <typename Request, typename Reply>
class CoordinatorStream {
 public:
  using Method = std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Reply>> (
      v1::Coordinator::Stub::*)(grpc::ClientContext*, grpc::CompletionQueue*);

  /// `method` is a PrepareAsync of the stub. `coordinator` must outlive it.
  CoordinatorStream(const CoordinatorClient& coordinator, Method method);
  ~CoordinatorStream();
  CoordinatorStream(const CoordinatorStream&) = delete;
  CoordinatorStream& operator=(const CoordinatorStream&) = delete;

  /// The answer, which the coordinator may delay by `wait`.
  absl::StatusOr<Reply> Ask(const Request& request, absl::Duration wait);

  /// For questions that need no answer: the newest one, to this question or an earlier, if any
  /// comes within `patience`.
  absl::StatusOr<std::optional<Reply>> Tell(const Request& request, absl::Duration patience);

 private:
  class Call;

  absl::StatusOr<std::optional<Reply>> Try(const Request& request, absl::Duration patience);

  // Constant after construction.
  const CoordinatorClient& coordinator_;
  const Method method_;

  std::unique_ptr<Call> call_;  // Null while none is open.
};

using HeartbeatStream = CoordinatorStream<v1::HeartbeatRequest, v1::HeartbeatReply>;
using WorkStream = CoordinatorStream<v1::GetWorkRequest, v1::GetWorkReply>;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_COORDINATOR_STREAM_H_
