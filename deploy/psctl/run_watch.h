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

/// Follows a started cluster until its run is over: asks for the status, shows and records it,
/// tells of workers that were lost. It decides nothing; Judge does.
///
/// Not thread-safe: main's thread owns it.
class RunWatch {
 public:
  /// How a watch ended; kGoOn if somebody asked to stop.
  struct Result {
    Verdict verdict = Verdict::kGoOn;
    v1::RunStatus status;  // The last one heard of.
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
  /// Notes in the status which workers were lost and how, which the coordinator may not know yet.
  void MarkLostWorkers();
  RunFacts FactsAt(absl::Time now) const;

  /// Gives the process behind a failure the time to end and so to say why.
  void WaitForCause();

  Cluster& cluster_;
  const StopSignal& stop_;
  MetricsLog& metrics_;
  ProgressPrinter& progress_;
  const absl::Duration start_timeout_;
  const absl::Time start_;
  const CoordinatorClient client_;

  v1::RunStatus status_;
  size_t ends_before_status_ = 0;  // Of the cluster's ends, those that were known before.
  absl::Time phase_since_;
  absl::Time last_worker_seen_;
  absl::Time next_question_;
  size_t ends_told_ = 0;
  bool was_told_of_metrics_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_H_
