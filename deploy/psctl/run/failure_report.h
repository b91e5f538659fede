#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_FAILURE_REPORT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_FAILURE_REPORT_H_

#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/process/exit_code.h"
#include "deploy/psctl/run/process_end.h"
#include "deploy/psctl/run/restart_policy.h"
#include "deploy/psctl/run/verdict.h"
#include "proto/status.pb.h"

namespace slipstream {

/// The reason why a run failed, for the end of stderr, and psctl's exit code.
struct FailureReport {
  ExitCode exit_code = ExitCode::kInternal;
  std::string text;     // Several lines, for stderr.
  std::string message;  // The first line, without psctl's name.

  /// The lines that the evidence quotes from a log.
  std::vector<std::string> log_lines;
};

/// The facts that the report is made from, besides the ends of the processes.
struct FailureEvidence {
  Verdict verdict = Verdict::kProcessFailed;

  /// The last status that the coordinator answered with. It tells how far the run came, and the
  /// coordinator's reason for the failure if it could still be asked.
  v1::RunStatus status;
  absl::Duration start_timeout;

  /// The paths of the models that the run has saved, the oldest first.
  std::vector<std::string> models;

  /// The log of the process that FindRootCause names (if none, of server 0), and the last errors in
  /// it.
  std::string log_path;
  std::vector<std::string> log_lines;
};

/// Returns the report. `ends` is in the order in which the processes ended.
FailureReport DescribeFailure(std::span<const ProcessEnd> ends, const FailureEvidence& evidence);

/// Returns a warning, one line, about a worker that was lost while the run goes on. `may_wait`:
/// where rounds need it, the run waits for another in its place.
std::string DescribeLostWorker(const ProcessEnd& end, uint32_t workers_running, bool may_wait);

/// Returns the same about an aggregator.
std::string DescribeLostAggregator(const ProcessEnd& end);

/// Returns a warning, one line, about a process that has ended and is started again, or is not.
/// `starts_max` is how often in a row it may be.
std::string DescribeRestart(const ProcessEnd& end, const RestartDecision& decision,
                            uint32_t starts_max);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_FAILURE_REPORT_H_
