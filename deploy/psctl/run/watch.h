#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/run/cluster.h"
#include "deploy/psctl/run/metrics_log.h"
#include "deploy/psctl/run/progress_printer.h"
#include "deploy/psctl/run/verdict.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Follows a started cluster until its run is over. It asks for the status, shows and records it,
/// and reports workers and aggregators that were lost, and servers and aggregators that were
/// started again. Judge decides.
///
/// If somebody asks to stop, it ends training, and follows the run for a bounded time until the
/// current weights are measured and saved.
///
/// Not thread-safe: main's thread owns it.
class RunWatch {
 public:
  struct Options {
    /// The run's cluster.start_timeout.
    absl::Duration start_timeout;

    /// Set if rounds wait for others in the places of lost workers (cluster.on_worker_loss).
    bool waits_for_lost = false;

    /// How long the run may take to be over after somebody asked to stop. If it is zero, the watch
    /// ends at once.
    absl::Duration save_timeout;

    /// How long the workers' programs may go on once the run has finished.
    absl::Duration finish_timeout;

    /// Whether workers measure the final weights, and so save them (evaluation.by).
    bool is_measured = true;

    /// Whether servers keep what a later run goes on from, so that SIGUSR1 ends no training.
    bool is_preemptible = false;

    /// Called once when somebody asks to stop, with the status of that moment.
    std::function<void(const v1::RunStatus&)> on_stop;
  };

  /// The end of a watch. The verdict is kGoOn if somebody asked to stop and the run was not over in
  /// time.
  struct Result {
    Verdict verdict = Verdict::kGoOn;
    v1::RunStatus status;  // The last status received.

    /// The number of the cluster's ends from before the run had finished.
    size_t ends_before_finish = 0;

    /// Why the weights were not saved when somebody asked to stop, in words for people.
    std::string not_saved;

    /// Set if the run is to stop, and to go on later.
    bool is_preempted = false;
  };

  /// All arguments except `options` must outlive the watch.
  RunWatch(Cluster& cluster, const StopSignal& stop, MetricsLog& metrics, ProgressPrinter& progress,
           Options options, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  Result Watch();

 private:
  /// Returns whether there is time to follow the run: always until somebody asks to stop, and then
  /// for the time in which the weights may be saved; none if the run has finished by then. The
  /// first call after that ends training.
  bool HasTime(absl::Time now);

  /// Ends training, because somebody has asked to stop. Returns how long the run may take to be
  /// over.
  absl::Duration BeginToEnd();
  void AskForStatus(absl::Time now);
  void Record(absl::Duration since_start);
  void TellOfLostProcesses();
  void TellOfStartsAgain();

  /// Warns of workers that live and do nothing, of each once until it goes on.
  void TellOfStalledWorkers();

  /// Says now and then whose programs a finished run waits for.
  void TellOfLateWorkers(absl::Time now);
  /// Marks lost workers in the status as dead, with the cause, which the coordinator may not know
  /// yet.
  void MarkLostWorkers();
  RunFacts FactsAt(absl::Time now) const;
  uint32_t WorkersRunning() const {
    return static_cast<uint32_t>(cluster_.Running(Role::kWorker).size());
  }

  /// Waits for the process behind a failure to end, so that its end says why.
  void WaitForCause();

  Cluster& cluster_;
  const StopSignal& stop_;
  MetricsLog& metrics_;
  ProgressPrinter& progress_;
  const Options options_;
  const absl::Time start_;
  const OperatorClient client_;

  v1::RunStatus status_;
  size_t ends_before_status_ = 0;  // The number of the cluster's ends known before the status.
  size_t ends_before_finish_ = 0;
  absl::Time phase_since_;
  absl::Time last_worker_seen_;
  absl::Time next_question_;
  size_t ends_told_ = 0;
  size_t starts_again_told_ = 0;
  bool was_told_of_metrics_ = false;
  std::set<uint32_t> stalled_told_;
  absl::Time late_workers_told_ = absl::InfinitePast();
  bool is_preempted_ = false;
  std::optional<absl::Time> ends_by_;  // Set when somebody has asked to stop.
  std::string not_saved_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_H_
