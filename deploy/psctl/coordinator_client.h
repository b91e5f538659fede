#ifndef SLIPSTREAM_DEPLOY_PSCTL_COORDINATOR_CLIENT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COORDINATOR_CLIENT_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "common/run/run_spec.h"
#include "deploy/psctl/status_stream.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Returns the credentials by which psctl shows a run who it is: an operator, unless the
/// certificate named in `security` says otherwise. Fails as CheckCredentials.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PsctlCredentials(
    const SecuritySpec& security);

/// What to do while a coordinator refuses connections.
enum class IfRefused { kFail, kWait };

/// Asks one coordinator for the status of its run, or watches it.
///
/// Thread-safe: const after construction.
class CoordinatorClient {
 public:
  /// `address` is host:port. Connects at the first question.
  CoordinatorClient(const std::string& address,
                    const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  /// Takes at most `timeout`. Failures are explained, as by Explain.
  absl::StatusOr<v1::RunStatus> GetStatus(absl::Duration timeout,
                                          IfRefused if_refused = IfRefused::kFail) const;

  /// Begins to watch; does not wait. The client and `stop`, which ends every wait, must outlive
  /// the stream.
  std::unique_ptr<StatusStream> Watch(absl::Duration interval, const StopSignal& stop) const;

  /// A call's failure for people: names the address and, of UNAVAILABLE and DEADLINE_EXCEEDED, how
  /// long it was tried if that is not 0. INVALID_ARGUMENT where what answers is no coordinator.
  absl::Status Explain(const absl::Status& status,
                       absl::Duration tried = absl::ZeroDuration()) const;

 private:
  /// One call; it waits for a connection until `deadline`, a steady time, if it `waits`.
  absl::Status Ask(absl::Time deadline, bool waits, v1::RunStatus& reply) const;

  const std::string address_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COORDINATOR_CLIENT_H_
