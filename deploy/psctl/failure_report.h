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

  /// Those that the evidence quotes from a log.
  std::vector<std::string> log_lines;
};

/// What the report draws on besides the ends of the processes.
struct FailureEvidence {
  Verdict verdict = Verdict::kProcessFailed;

  /// The last one that the coordinator answered with: how far the run came, and the reason that it
  /// gave, if it could still be asked.
  v1::RunStatus status;
  absl::Duration start_timeout;

  /// The models that the run has saved, by path, oldest first.
  std::vector<std::string> models;

  /// Of the process that FindRootCause names, if any: its log and the last errors there.
  std::string log_path;
  std::vector<std::string> log_lines;
};

FailureReport DescribeFailure(std::span<const ProcessEnd> ends, const FailureEvidence& evidence);

/// The line that tells of a worker that was lost while the run goes on.
std::string DescribeLostWorker(const ProcessEnd& end, uint32_t workers_running);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_FAILURE_REPORT_H_
