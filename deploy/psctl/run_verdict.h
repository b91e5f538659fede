#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_VERDICT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_VERDICT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/time/time.h"
#include "deploy/psctl/process_end.h"
#include "proto/status.pb.h"

namespace slipstream {

/// What psctl knows of a run that it watches.
struct RunFacts {
  /// As the coordinator said last.
  v1::Phase phase = v1::PHASE_UNSPECIFIED;
  absl::Duration in_phase;

  /// In the order in which they ended.
  std::span<const ProcessEnd> ends;

  /// How many of them psctl knew of before it asked for `phase`.
  size_t ends_before_phase = 0;

  uint32_t workers_running = 0;

  /// For how long there has been no worker.
  absl::Duration without_workers;

  /// cluster.start_timeout; counted from the start of the phase that waits.
  absl::Duration start_timeout;
};

enum class Verdict {
  kGoOn,
  kFinished,
  /// A process failed; which one, FindRootCause says.
  kProcessFailed,
  /// The coordinator says so, and no process has ended to explain it.
  kRunFailed,
  kWorkersGone,
  kNotStarted,
  /// A worker was lost before all had come. Nobody starts it again, so they never will.
  kWorkerMissing,
};

/// Bounds on waiting for what should follow at once.
struct VerdictLimits {
  /// The coordinator notices in time that its last worker ended well.
  absl::Duration without_workers_max = absl::Seconds(3);

  /// A process that made the run fail says so itself by ending.
  absl::Duration failed_phase_max = absl::Seconds(3);

  /// Workers leave a finished run.
  absl::Duration finished_phase_max = absl::Seconds(10);

  /// Over start_timeout: the coordinator keeps that deadline itself and knows better what is
  /// missing.
  absl::Duration start_slack = absl::Seconds(5);
};

/// Not all have come yet: a worker that is lost now is missing.
bool IsWaitingToStart(v1::Phase phase);

Verdict Judge(const RunFacts& facts, const VerdictLimits& limits = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_VERDICT_H_
