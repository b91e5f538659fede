#include "deploy/psctl/run/verdict.h"

#include <algorithm>

#include "deploy/psctl/run/root_cause.h"

namespace slipstream {
namespace {

bool IsStillGathering(v1::Phase phase) {
  return phase == v1::WAITING_FOR_SERVERS || phase == v1::WAITING_FOR_WORKERS;
}

bool Has(EndMeaning meaning, std::span<const ProcessEnd> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](const ProcessEnd& end) { return MeaningOf(end) == meaning; });
}

/// Returns the state of a run that has finished. A program that fails now ends no other: each may
/// be evaluating or saving.
Verdict JudgeFinished(const RunFacts& facts, const VerdictLimits& limits) {
  const bool have_workers_ended =
      facts.workers_running == 0 || facts.in_phase > facts.finish_timeout;
  const bool have_readers_left = !facts.has_readers || facts.in_phase > limits.readers_max;
  if (!have_workers_ended || !have_readers_left) return Verdict::kGoOn;
  return Has(EndMeaning::kFailure, facts.ends) ? Verdict::kProcessFailed : Verdict::kFinished;
}

}  // namespace

bool IsWaitingToStart(v1::Phase phase) {
  return phase == v1::PHASE_UNSPECIFIED || IsStillGathering(phase);
}

Verdict Judge(const RunFacts& facts, const VerdictLimits& limits) {
  if (facts.phase == v1::FINISHED) return JudgeFinished(facts, limits);
  if (Has(EndMeaning::kFailure, facts.ends)) return Verdict::kProcessFailed;
  if (facts.phase == v1::FAILED) {
    const bool is_over = facts.workers_running == 0 || facts.in_phase > limits.failed_phase_max;
    return is_over ? Verdict::kRunFailed : Verdict::kGoOn;
  }
  const std::span<const ProcessEnd> known = facts.ends.first(facts.ends_before_phase);
  const bool needs_aggregators = facts.phase == v1::WAITING_FOR_SERVERS;
  if (needs_aggregators && Has(EndMeaning::kLostAggregator, known)) return Verdict::kProcessFailed;
  if (IsStillGathering(facts.phase) && Has(EndMeaning::kLostWorker, known)) {
    return Verdict::kWorkerMissing;
  }
  // No worker had work yet that others could take over, so the run would go on without a worker
  // that it was configured with.
  const auto is_cut_off = [](const ProcessEnd& end) {
    return end.name.role != Role::kAggregator && IsCutOff(end);
  };
  if (facts.phase == v1::INITIALIZING && std::ranges::any_of(known, is_cut_off)) {
    return Verdict::kProcessFailed;
  }
  if (facts.workers_running == 0 && facts.without_workers > limits.without_workers_max) {
    return Verdict::kWorkersGone;
  }
  if (IsWaitingToStart(facts.phase) && facts.in_phase > facts.start_timeout + limits.start_slack) {
    return Verdict::kNotStarted;
  }
  return Verdict::kGoOn;
}

}  // namespace slipstream
