#include "deploy/psctl/failure_report.h"

#include <fmt/format.h>

#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "deploy/psctl/progress_view.h"
#include "deploy/psctl/root_cause.h"

namespace slipstream {
namespace {

std::string EndText(const ProcessEnd& end) {
  if (end.signal != 0) return fmt::format("was ended by {}", end.HowText());
  if (end.exit_code == 0) return "ended before the run was over";
  return fmt::format("failed with {}", end.HowText());
}

/// Code and message alone.
FailureReport DescribeWithoutProcess(const FailureEvidence& evidence) {
  switch (evidence.verdict) {
    case Verdict::kNotStarted:
      return {
          .exit_code = ExitCode::kUnreachable,
          .message = fmt::format("the run did not start within {}: {}",
                                 DurationText(evidence.start_timeout), PhaseText(evidence.phase))};
    case Verdict::kWorkerMissing:
      return {.exit_code = ExitCode::kInternal,
              .message = "the run cannot start without all of its workers"};
    case Verdict::kWorkersGone:
      return {.exit_code = ExitCode::kInternal,
              .message = fmt::format("all workers ended before the run was over: {}",
                                     PhaseText(evidence.phase))};
    default:
      return {.exit_code = ExitCode::kInternal, .message = "the run failed"};
  }
}

}  // namespace

FailureReport DescribeFailure(std::span<const ProcessEnd> ends, const FailureEvidence& evidence) {
  FailureReport report = DescribeWithoutProcess(evidence);
  if (const ProcessEnd* cause = FindRootCause(ends)) {
    report.exit_code = ExitCodeFollowing(*cause);
    const bool was_lost = MeaningOf(*cause) == EndMeaning::kLostWorker;
    report.message = fmt::format("{}{} {}", was_lost ? report.message + "; " : "",
                                 cause->name.Text(), EndText(*cause));
  }
  report.text = "psctl: error: " + report.message + "\n";
  if (!evidence.coordinator_says.empty()) {
    report.text += "  the coordinator says: " + Printable(evidence.coordinator_says) + "\n";
  }
  for (const std::string& line : evidence.log_lines) report.text += "  | " + Printable(line) + "\n";
  if (!evidence.log_path.empty()) report.text += fmt::format("  log: {}\n", evidence.log_path);
  return report;
}

std::string DescribeLostWorker(const ProcessEnd& end, uint32_t workers_running) {
  const std::string rest = workers_running == 0
                               ? "no worker is left"
                               : fmt::format("the run goes on with {} worker{}", workers_running,
                                             workers_running == 1 ? "" : "s");
  return fmt::format("psctl: warning: {} was lost: {}; {}", end.name.Text(), end.HowText(), rest);
}

}  // namespace slipstream
