#include "deploy/psctl/run_watch.h"

#include <utility>

#include "absl/time/clock.h"
#include "deploy/psctl/failure_report.h"
#include "deploy/psctl/root_cause.h"

namespace slipstream {
namespace {

constexpr absl::Duration kStatusInterval = absl::Milliseconds(200);
constexpr absl::Duration kStatusTimeout = absl::Seconds(1);
constexpr absl::Duration kCausePatience = absl::Seconds(1);

}  // namespace

RunWatch::RunWatch(Cluster& cluster, const StopSignal& stop, MetricsLog& metrics,
                   ProgressPrinter& progress, absl::Duration start_timeout)
    : cluster_(cluster),
      stop_(stop),
      metrics_(metrics),
      progress_(progress),
      start_timeout_(start_timeout),
      start_(absl::Now()),
      client_(cluster.coordinator()),
      phase_since_(start_),
      last_worker_seen_(start_),
      next_question_(start_) {}

RunWatch::Result RunWatch::Watch() {
  Verdict verdict = Verdict::kGoOn;
  while (verdict == Verdict::kGoOn && !stop_.stopped()) {
    cluster_.WaitForChange(next_question_ - absl::Now());
    cluster_.Poll();
    const absl::Time now = absl::Now();
    if (cluster_.running(Role::kWorker) > 0) last_worker_seen_ = now;
    TellOfLostWorkers();
    if (now >= next_question_) AskForStatus(now);
    verdict = Judge(FactsAt(absl::Now()));
  }
  if (verdict == Verdict::kProcessFailed) WaitForCause();
  // Figures may have moved since the last question, and a failure been noticed.
  if (verdict != Verdict::kGoOn) AskForStatus(absl::Now());
  return {.verdict = verdict, .status = std::move(status_)};
}

void RunWatch::AskForStatus(absl::Time now) {
  next_question_ = now + kStatusInterval;
  absl::StatusOr<v1::RunStatus> status = client_.GetStatus(kStatusTimeout);
  // A server that is gone shows as an ended process; one that is slow, as nothing.
  if (!status.ok()) return;
  if (status->phase() != status_.phase()) phase_since_ = now;
  status_ = *std::move(status);
  metrics_.Add(now - start_, status_);
  progress_.Show(status_, now);
}

void RunWatch::TellOfLostWorkers() {
  for (; ends_told_ < cluster_.ends().size(); ++ends_told_) {
    const ProcessEnd& end = cluster_.ends()[ends_told_];
    if (MeaningOf(end) != EndMeaning::kLostWorker) continue;
    progress_.Note(DescribeLostWorker(end, cluster_.running(Role::kWorker)));
  }
}

RunFacts RunWatch::FactsAt(absl::Time now) const {
  return {.phase = status_.phase(),
          .in_phase = now - phase_since_,
          .ends = cluster_.ends(),
          .workers_running = cluster_.running(Role::kWorker),
          .without_workers = now - last_worker_seen_,
          .start_timeout = start_timeout_};
}

void RunWatch::WaitForCause() {
  const absl::Time deadline = absl::Now() + kCausePatience;
  while (absl::Now() < deadline && !ExplainsItself(*FindRootCause(cluster_.ends()))) {
    if (cluster_.running(Role::kServer) + cluster_.running(Role::kWorker) == 0) return;
    if (stop_.stopped()) return;
    cluster_.WaitForChange(deadline - absl::Now());
    cluster_.Poll();
  }
}

}  // namespace slipstream
