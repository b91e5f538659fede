#ifndef SLIPSTREAM_DEPLOY_PSCTL_OPERATOR_CLIENT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_OPERATOR_CLIENT_H_

#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/status_stream.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Returns the credentials by which psctl shows a run who it is: an operator, unless the
/// certificate named in `security` says otherwise. Fails as CheckCredentials.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PsctlCredentials(
    const SecuritySpec& security);

/// The reaction to a coordinator that refuses connections.
enum class IfRefused { kFail, kWait };

/// Asks one coordinator for the status of its run, watches or changes the run, has it save
/// checkpoints, or ends its training.
///
/// Thread-safe: const after construction.
class OperatorClient {
 public:
  /// `address` is host:port. Connects at the first question.
  OperatorClient(const std::string& address,
                 const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  /// Takes at most `timeout`. Failures are explained, as by Explain.
  absl::StatusOr<v1::RunStatus> GetStatus(absl::Duration timeout,
                                          IfRefused if_refused = IfRefused::kFail) const;

  /// Ends training now, as if its time were over. Does not wait until the final weights are saved;
  /// the status tells. Takes at most `timeout`. OUT_OF_RANGE if the run has finished,
  /// FAILED_PRECONDITION before training has begun, ABORTED if the run has failed; all failures are
  /// explained, as by Explain.
  absl::Status EndTraining(absl::Duration timeout) const;

  /// Changes settings, as `key=value`, for the rest of the run. Returns the epoch with whose end
  /// that takes effect; nothing if it has taken effect. Takes at most `timeout`. The codes of
  /// failures are those of the call ChangeRun; all are explained, as by Explain.
  absl::StatusOr<std::optional<uint32_t>> ChangeRun(const std::vector<std::string>& settings,
                                                    absl::Duration timeout) const;

  /// Has all shards save a checkpoint, or waits on for one that an earlier call has ordered
  /// (`order`, else 0). Returns how far they are once all have saved, at the latest after `wait`.
  /// The codes of failures are those of the call SaveCheckpoint; all are explained, as by Explain.
  absl::StatusOr<v1::SaveCheckpointReply> SaveCheckpoint(uint64_t order, absl::Duration wait) const;

  /// Has all shards save before processes of the run leave it, within a few seconds. Servers that
  /// rounds keep in step save nothing by themselves when they are told to stop. If it fails, what
  /// came since the last checkpoint is lost.
  void SaveBeforeLeaving() const;

  /// Begins to watch; does not wait. The client and `stop`, which ends every wait, must outlive
  /// the stream.
  std::unique_ptr<StatusStream> Watch(absl::Duration interval, const StopSignal& stop) const;

  /// Returns a call's failure in words for people, which name the address. UNAVAILABLE and
  /// DEADLINE_EXCEEDED say how long the call was tried, if that is not 0. INVALID_ARGUMENT if the
  /// peer is no coordinator.
  absl::Status Explain(const absl::Status& status,
                       absl::Duration tried = absl::ZeroDuration()) const;

 private:
  /// Makes one call. If it `waits`, it waits for a connection until `deadline`, a steady time.
  absl::Status Ask(absl::Time deadline, bool waits, v1::RunStatus& reply) const;

  const std::string address_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_OPERATOR_CLIENT_H_
