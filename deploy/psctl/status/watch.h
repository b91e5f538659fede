#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_WATCH_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_WATCH_H_

#include <grpcpp/security/credentials.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Whom to follow, and what to do with what comes.
struct FollowOptions {
  std::string coordinator;

  /// The time between two statuses, and how long a coordinator that is not there is waited for.
  absl::Duration interval;
  absl::Duration wait;
  std::function<void(const v1::RunStatus&)> show;

  /// Is called with the last status, after `show`.
  std::function<void(const v1::RunStatus&)> end;

  /// Tells people something, in one line without its end.
  std::function<void(std::string_view)> note;
};

/// Gets the status of a running cluster again and again until the run is over. If the coordinator
/// is not there, at the beginning or later, notes that and waits for it. Returns psctl's exit code,
/// which is that of `stop` if that ends it.
int FollowStatus(const FollowOptions& options,
                 const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                 const StopSignal& stop);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_WATCH_H_
