#ifndef SLIPSTREAM_DEPLOY_PSCTL_FAILURE_REPORT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_FAILURE_REPORT_H_

#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/process/exit_code.h"
#include "deploy/psctl/process_end.h"
#include "deploy/psctl/run_verdict.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Why a run failed, for the end of stderr, and what psctl exits with.
struct FailureReport {
  ExitCode exit_code = ExitCode::kInternal;
  std::string text;     // Several lines, for stderr.
  std::string message;  // The first of them, without psctl's name.
};

/// What the report draws on besides the ends of the processes.
struct FailureEvidence {
  Verdict verdict = Verdict::kProcessFailed;

  /// What the coordinator gave as the reason, if it could be asked.
  std::string coordinator_says;
  v1::Phase phase = v1::PHASE_UNSPECIFIED;
  absl::Duration start_timeout;

  /// Of the process that FindRootCause names, if any: its log and the last errors there.
  std::string log_path;
  std::vector<std::string> log_lines;
};

FailureReport DescribeFailure(std::span<const ProcessEnd> ends, const FailureEvidence& evidence);

/// The line that tells of a worker that was lost while the run goes on.
std::string DescribeLostWorker(const ProcessEnd& end, uint32_t workers_running);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_FAILURE_REPORT_H_
