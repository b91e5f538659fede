#include "deploy/psctl/run/failure_report.h"

#include <fmt/format.h>

#include <csignal>

#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/process/exit_code.h"
#include "deploy/psctl/run/root_cause.h"
#include "deploy/psctl/status/durability_view.h"
#include "deploy/psctl/status/progress_view.h"

namespace slipstream {
namespace {

std::string EndText(const ProcessEnd& end) {
  if (end.signal != 0) return fmt::format("was killed by {}", end.HowText());
  if (end.exit_code == 0) return "ended before the run was over";
  return fmt::format("failed with {}", end.HowText());
}

bool HadBegun(const v1::RunStatus& status) { return status.phase() >= v1::TRAINING; }

/// Returns which weights were lost with a server, or can be had again; empty if the process held no
/// trained weights.
std::string LossText(const ProcessEnd& end, const v1::RunStatus& status) {
  if (end.name.role != Role::kServer || !HadBegun(status)) return "";
  const int shard = static_cast<int>(end.name.number);
  std::string range;
  if (shard < status.shards_size()) {
    range = fmt::format(" (parameters {} to {} of {})", status.shards(shard).begin(),
                        status.shards(shard).end() - 1, status.parameters());
  }
  if (HasDurability(status)) {
    return fmt::format("; started again, it goes on with shard {}{} from what it has saved", shard,
                       range);
  }
  return fmt::format("; the weights of shard {}{} are lost with it, so the run cannot go on", shard,
                     range);
}

/// Returns lines on how far the run came, which models are saved, why it failed and what to do
/// next; empty if training had not begun.
std::string OutlookText(const ProcessEnd* cause, const FailureEvidence& evidence) {
  const v1::RunStatus& status = evidence.status;
  if (!HadBegun(status)) return "";
  std::string text =
      fmt::format("  reached: epoch {}, {} updates\n", CurrentEpoch(status), status.updates());
  for (const std::string& model : evidence.models) text += "  saved: " + Printable(model) + "\n";
  if (cause == nullptr || cause->name.role != Role::kServer) return text;
  if (cause->signal == SIGKILL) {
    text +=
        "  why: signal 9 comes from a user, or from a system that is out of memory (see dmesg)\n";
  }
  if (evidence.models.empty()) {
    return text +
           "  next: run it again; no model was saved on the way, as "
           "--set model.save_every_epochs=1 does\n";
  }
  return text + fmt::format(
                    "  next: run it again, from the last saved model with "
                    "--set model.init={}\n",
                    Printable(evidence.models.back()));
}

/// Returns a report that has only the exit code and the message for the verdict.
FailureReport DescribeWithoutProcess(const FailureEvidence& evidence) {
  switch (evidence.verdict) {
    case Verdict::kNotStarted:
      return {.exit_code = ExitCode::kUnreachable,
              .message = fmt::format("the run did not start within {}: {}",
                                     DurationText(evidence.start_timeout),
                                     PhaseText(evidence.status.phase()))};
    case Verdict::kWorkerMissing:
      return {.exit_code = ExitCode::kRunFailed,
              .message = "the run cannot start without all of its workers"};
    case Verdict::kWorkersGone:
      return {.exit_code = ExitCode::kRunFailed,
              .message = fmt::format("all workers ended before the run was over: {}",
                                     PhaseText(evidence.status.phase()))};
    default:
      return {.exit_code = ExitCodeFor(FailureOf(evidence.status)), .message = "the run failed"};
  }
}

}  // namespace

FailureReport DescribeFailure(std::span<const ProcessEnd> ends, const FailureEvidence& evidence) {
  FailureReport report = DescribeWithoutProcess(evidence);
  const ProcessEnd* cause = FindRootCause(ends);
  if (cause != nullptr) {
    report.exit_code = ExitCodeFollowing(*cause);
    if (report.exit_code == ExitCode::kRunFailed && evidence.status.phase() == v1::FAILED) {
      report.exit_code = ExitCodeFor(FailureOf(evidence.status));  // It may have diverged.
    }
    const bool was_lost = MeaningOf(*cause) == EndMeaning::kLostWorker;
    report.message =
        fmt::format("{}{} {}{}", was_lost ? report.message + "; " : "", cause->name.Text(),
                    EndText(*cause), LossText(*cause, evidence.status));
  }
  report.text = "psctl: error: " + report.message + "\n";
  const std::string& reason = evidence.status.failure();
  if (!reason.empty()) report.text += "  the coordinator says: " + Printable(reason) + "\n";
  report.text += OutlookText(cause, evidence);
  for (const std::string& line : evidence.log_lines) report.text += "  | " + Printable(line) + "\n";
  report.log_lines = evidence.log_lines;
  if (!evidence.log_path.empty()) report.text += fmt::format("  log: {}\n", evidence.log_path);
  return report;
}

std::string DescribeLostWorker(const ProcessEnd& end, uint32_t workers_running, bool may_wait) {
  if (may_wait && workers_running > 0) {
    return fmt::format(
        "psctl: warning: {0} was lost: {1}; where rounds need it, the run waits for another in its "
        "place (cluster.on_worker_loss), such as ps_worker --worker {2}",
        end.name.Text(), end.HowText(), end.name.number);
  }
  const std::string rest = workers_running == 0
                               ? "no worker is left"
                               : fmt::format("the run goes on with {} worker{}", workers_running,
                                             workers_running == 1 ? "" : "s");
  return fmt::format("psctl: warning: {} was lost: {}; {}", end.name.Text(), end.HowText(), rest);
}

std::string DescribeLostAggregator(const ProcessEnd& end) {
  return fmt::format(
      "psctl: warning: {} was lost: {}; the run goes on, and its workers push to server {} "
      "themselves",
      end.name.Text(), end.HowText(), end.name.number);
}

std::string DescribeRestart(const ProcessEnd& end, const RestartDecision& decision,
                            uint32_t starts_max) {
  const std::string process = end.name.role == Role::kServer
                                  ? fmt::format("shard {}'s server", end.name.number)
                                  : end.name.Text();
  const std::string what =
      decision.starts ? fmt::format("starts again in {} ({} of {})", DurationText(decision.pause),
                                    decision.number, starts_max)
                      : "is not started again: " + decision.why_not;
  return fmt::format("psctl: warning: {} {}; it {}", process, EndText(end), what);
}

}  // namespace slipstream
