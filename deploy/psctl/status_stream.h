#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_STREAM_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/status.pb.h"

namespace slipstream {

/// One call of WatchStatus. A signal to stop ends every wait.
///
/// Not thread-safe: one owner.
class StatusStream {
 public:
  /// Starts the call. `stub` and `stop` must outlive it.
  StatusStream(v1::Coordinator::Stub& stub, absl::Duration interval, const StopSignal& stop);

  /// Cancels the call if it is still under way.
  ~StatusStream();
  StatusStream(const StatusStream&) = delete;
  StatusStream& operator=(const StatusStream&) = delete;

  /// Returns the next status, or nothing once the run is over and the last status was returned.
  /// Fails with CANCELLED if stopped, with DEADLINE_EXCEEDED if nothing comes within `patience`,
  /// and else with the status that ended the call. Must not be called again after a failure or the
  /// end.
  absl::StatusOr<std::optional<v1::RunStatus>> Next(absl::Duration patience);

 private:
  /// Set if the operation under way went well.
  absl::StatusOr<bool> AwaitOperation(absl::Time deadline);

  const StopSignal& stop_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::RunStatus>> reader_;
  bool is_started_ = false;

  // Written by the operation under way.
  v1::RunStatus status_;
  grpc::Status end_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_STREAM_H_
