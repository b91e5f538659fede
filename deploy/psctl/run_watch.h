#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_H_

#include <cstddef>

#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/cluster.h"
#include "deploy/psctl/coordinator_client.h"
#include "deploy/psctl/metrics_log.h"
#include "deploy/psctl/progress_printer.h"
#include "deploy/psctl/run_verdict.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Follows a started cluster until its run is over. It asks for the status, shows and records it,
/// and reports workers that were lost. Judge decides.
///
/// Not thread-safe: main's thread owns it.
class RunWatch {
 public:
  /// The end of a watch. The verdict is kGoOn if somebody asked to stop.
  struct Result {
    Verdict verdict = Verdict::kGoOn;
    v1::RunStatus status;  // The last status received.
  };

  /// The arguments must outlive the watch.
  RunWatch(Cluster& cluster, const StopSignal& stop, MetricsLog& metrics, ProgressPrinter& progress,
           absl::Duration start_timeout,
           const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  Result Watch();

 private:
  void AskForStatus(absl::Time now);
  void Record(absl::Duration since_start);
  void TellOfLostWorkers();
  /// Adds lost workers and the causes to the status, which the coordinator may not know yet.
  void MarkLostWorkers();
  RunFacts FactsAt(absl::Time now) const;

  /// Waits for the process behind a failure to end, so that its end says why.
  void WaitForCause();

  Cluster& cluster_;
  const StopSignal& stop_;
  MetricsLog& metrics_;
  ProgressPrinter& progress_;
  const absl::Duration start_timeout_;
  const absl::Time start_;
  const CoordinatorClient client_;

  v1::RunStatus status_;
  size_t ends_before_status_ = 0;  // The number of the cluster's ends known before the status.
  absl::Time phase_since_;
  absl::Time last_worker_seen_;
  absl::Time next_question_;
  size_t ends_told_ = 0;
  bool was_told_of_metrics_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_H_
