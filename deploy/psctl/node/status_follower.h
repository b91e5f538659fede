#ifndef SLIPSTREAM_DEPLOY_PSCTL_NODE_STATUS_FOLLOWER_H_
#define SLIPSTREAM_DEPLOY_PSCTL_NODE_STATUS_FOLLOWER_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/operator_client.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Watches the status of a run whose servers end with it. A question may come too late for the last
/// status; who watches is sent it. Once somebody asks to stop, it watches no more.
///
/// Thread-safe: guarded by its own mutex.
class StatusFollower {
 public:
  /// Watches from now on. `stop` must outlive it.
  StatusFollower(const std::string& coordinator,
                 const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                 const StopSignal& stop);

  /// Returns the newest status; nothing if none has come since the last call.
  std::optional<v1::RunStatus> TakeNewest();

  /// Returns the last status of a run that is over; nothing if it does not come within `timeout`.
  std::optional<v1::RunStatus> AwaitLast(absl::Duration timeout);

 private:
  void Follow(const std::stop_token& end);

  /// Reads one stream to its end. Returns whether the run is over.
  bool ReadStream(const std::stop_token& end);

  const OperatorClient client_;
  const StopSignal& stop_;
  Mutex mutex_;
  CondVar has_news_;
  std::optional<v1::RunStatus> newest_ ABSL_GUARDED_BY(mutex_);
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // The last member: it uses the others.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_NODE_STATUS_FOLLOWER_H_
