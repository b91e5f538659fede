#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_VERDICT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_VERDICT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/time/time.h"
#include "deploy/psctl/run/process_end.h"
#include "proto/status.pb.h"

namespace slipstream {

/// The facts that psctl has about a run that it watches.
struct RunFacts {
  /// The phase that the coordinator reported last, and how long the run has been in it.
  v1::Phase phase = v1::PHASE_UNSPECIFIED;
  absl::Duration in_phase;

  /// The ends of processes, in the order in which they ended.
  std::span<const ProcessEnd> ends;

  /// The number of `ends` that psctl knew of before it asked for `phase`.
  size_t ends_before_phase = 0;

  uint32_t workers_running = 0;

  /// Whether readers are there that may want the last state.
  bool has_readers = false;

  /// How long the workers' programs may go on once the run has finished.
  absl::Duration finish_timeout = absl::InfiniteDuration();

  /// How long no worker has been running.
  absl::Duration without_workers;

  /// cluster.start_timeout, counted from the begin of the phase that waits.
  absl::Duration start_timeout;
};

/// The state of a run as psctl judges it.
enum class Verdict {
  kGoOn,
  kFinished,
  /// A process failed, in a finished run that of a worker or a server after the others had ended;
  /// FindRootCause finds out which one.
  kProcessFailed,
  /// The coordinator reports that the run failed, and the end of no process explains why.
  kRunFailed,
  kWorkersGone,
  kNotStarted,
  /// A worker was lost before all had come. Nobody starts it again, so the run cannot start.
  kWorkerMissing,
};

/// How long psctl waits for events that should follow at once.
struct VerdictLimits {
  /// How long the coordinator may take to notice that the last worker has ended.
  absl::Duration without_workers_max = absl::Seconds(3);

  /// How long the process that made the run fail may take to end, which explains the failure.
  absl::Duration failed_phase_max = absl::Seconds(3);

  /// How long readers may take to leave a finished run.
  absl::Duration readers_max = absl::Seconds(10);

  /// How long psctl waits after start_timeout. The coordinator keeps that deadline itself, and can
  /// say who is missing.
  absl::Duration start_slack = absl::Seconds(5);
};

/// Returns whether servers or workers have still to come. A worker that is lost now is missing.
bool IsWaitingToStart(v1::Phase phase);

/// Returns the state of the run.
Verdict Judge(const RunFacts& facts, const VerdictLimits& limits = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_VERDICT_H_
