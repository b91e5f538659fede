#include "deploy/psctl/run/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "common/alarms/run_alarms.h"
#include "common/base/duration_text.h"
#include "common/process/steady_time.h"
#include "deploy/psctl/run/failure_report.h"
#include "deploy/psctl/run/root_cause.h"

namespace slipstream {
namespace {

constexpr absl::Duration kStatusInterval = absl::Milliseconds(200);
constexpr absl::Duration kWatchTimeout = absl::Seconds(1);
constexpr absl::Duration kCausePatience = absl::Seconds(1);

// When a line says who has not ended after the run, and how often it is repeated.
constexpr absl::Duration kLateAfter = absl::Seconds(2);
constexpr absl::Duration kLateInterval = absl::Seconds(30);

}  // namespace

RunWatch::RunWatch(Cluster& cluster, const StopSignal& stop, MetricsLog& metrics,
                   ProgressPrinter& progress, Options options,
                   const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : cluster_(cluster),
      stop_(stop),
      metrics_(metrics),
      progress_(progress),
      options_(std::move(options)),
      start_(SteadyNow()),
      client_(cluster.coordinator(), credentials),
      phase_since_(start_),
      last_worker_seen_(start_),
      next_question_(start_) {}

RunWatch::Result RunWatch::Watch() {
  Verdict verdict = Verdict::kGoOn;
  while (verdict == Verdict::kGoOn && HasTime(SteadyNow())) {
    cluster_.WaitForChange(next_question_ - SteadyNow());
    cluster_.Poll();
    TellOfStartsAgain();
    const absl::Time now = SteadyNow();
    if (!cluster_.Running(Role::kWorker).empty()) last_worker_seen_ = now;
    // A process may end once the run has finished, and not before: so its phase is asked for.
    const bool has_news = cluster_.ends().size() > ends_before_status_;
    if (now >= next_question_ || has_news) AskForStatus(now);
    TellOfLostProcesses();
    TellOfStalledWorkers();
    TellOfLateWorkers(now);
    verdict = Judge(FactsAt(SteadyNow()));
  }
  if (verdict == Verdict::kProcessFailed) WaitForCause();
  // Figures may have moved since the last question, and a failure been noticed.
  if (verdict != Verdict::kGoOn) AskForStatus(SteadyNow());
  MarkLostWorkers();
  return {.verdict = verdict,
          .status = std::move(status_),
          .ends_before_finish = ends_before_finish_,
          .not_saved = std::move(not_saved_),
          .is_preempted = is_preempted_};
}

bool RunWatch::HasTime(absl::Time now) {
  if (!stop_.stopped()) return true;
  is_preempted_ = stop_.signal() == SIGUSR1 && options_.is_preemptible &&
                  status_.phase() < v1::FINISHED && !ends_by_.has_value();
  if (is_preempted_) {
    client_.SaveBeforeLeaving();
    return false;
  }
  if (!ends_by_.has_value()) ends_by_ = now + BeginToEnd();
  if (now < *ends_by_) return true;
  if (not_saved_.empty()) {
    not_saved_ = fmt::format(
        "{} within {}{}",
        options_.is_measured ? "they were not measured and saved" : "training did not end",
        DurationText(options_.save_timeout), AwaitedText(status_));
  }
  return false;
}

absl::Duration RunWatch::BeginToEnd() {
  options_.on_stop(status_);
  if (status_.phase() == v1::FINISHED) return absl::ZeroDuration();
  if (options_.save_timeout <= absl::ZeroDuration()) {
    not_saved_ = "--save-timeout is 0";
  } else {
    const absl::Status ended = client_.EndTraining(kWatchTimeout);
    // OUT_OF_RANGE means that the run has finished, so its weights are saved.
    if (!ended.ok() && !absl::IsOutOfRange(ended)) not_saved_ = std::string(ended.message());
  }
  if (!not_saved_.empty()) return absl::ZeroDuration();
  progress_.Note(fmt::format(
      "psctl: training ends, and {}, for at most {}; a second signal does not wait",
      options_.is_measured ? "the weights are measured and saved" : "the workers' programs may end",
      DurationText(options_.save_timeout)));
  return options_.save_timeout;
}

void RunWatch::AskForStatus(absl::Time now) {
  next_question_ = now + kStatusInterval;
  const size_t ends_before = cluster_.ends().size();
  absl::StatusOr<v1::RunStatus> status = client_.GetStatus(kWatchTimeout);
  // psctl sees a server that is gone by its ended process. A slow one needs no answer.
  if (!status.ok()) return;
  if (status->phase() != status_.phase()) {
    phase_since_ = now;
    ends_before_finish_ = ends_before;
  }
  status_ = *std::move(status);
  cluster_.Note(status_);
  ends_before_status_ = ends_before;
  Record(now - start_);
  progress_.Show(status_, now);
}

void RunWatch::Record(absl::Duration since_start) {
  const absl::Status added = metrics_.Add(since_start, status_);
  if (added.ok() || was_told_of_metrics_) return;
  was_told_of_metrics_ = true;
  progress_.Note("psctl: warning: " + std::string(added.message()) +
                 "; the run goes on, and metrics do as soon as they can be written");
}

void RunWatch::TellOfLostProcesses() {
  // Only ends before the run was last seen to train count, because a run that fails ends its
  // workers.
  const bool goes_on = status_.phase() >= v1::TRAINING && status_.phase() < v1::FINISHED;
  if (!goes_on) return;
  for (; ends_told_ < ends_before_status_; ++ends_told_) {
    const ProcessEnd& end = cluster_.ends()[ends_told_];
    const EndMeaning meaning = MeaningOf(end);
    if (meaning == EndMeaning::kLostWorker) {
      progress_.Note(DescribeLostWorker(end, WorkersRunning(), options_.waits_for_lost));
    } else if (meaning == EndMeaning::kLostAggregator) {
      progress_.Note(DescribeLostAggregator(end));
    }
  }
}

void RunWatch::TellOfStartsAgain() {
  for (; starts_again_told_ < cluster_.restarts().size(); ++starts_again_told_) {
    const auto& [end, decision] = cluster_.restarts()[starts_again_told_];
    progress_.Note(DescribeRestart(end, decision, cluster_.starts_max()));
  }
}

void RunWatch::TellOfStalledWorkers() {
  for (const v1::WorkerStatus& worker : status_.workers()) {
    if (!worker.is_stalled()) {
      stalled_told_.erase(worker.worker());
    } else if (stalled_told_.insert(worker.worker()).second) {
      progress_.Note("psctl: warning: " + StalledText(worker));
    }
  }
}

void RunWatch::TellOfLateWorkers(absl::Time now) {
  const absl::Duration late = now - phase_since_;
  if (status_.phase() != v1::FINISHED || late < kLateAfter) return;
  if (now - late_workers_told_ < kLateInterval) return;
  const std::vector<uint32_t> running = cluster_.Running(Role::kWorker);
  if (running.empty()) return;
  late_workers_told_ = now;
  const bool is_bounded = options_.finish_timeout < absl::InfiniteDuration();
  progress_.Note(fmt::format(
      "psctl: the run is over for {}; waiting for {} to end{}; Ctrl-C does not wait",
      DurationText(late), WorkersText(running),
      is_bounded ? ", at most " + DurationText(options_.finish_timeout - late) + " more" : ""));
}

void RunWatch::MarkLostWorkers() {
  // Workers that ended later may have ended because the run had failed.
  for (size_t i = 0; i < ends_before_status_; ++i) {
    const ProcessEnd& end = cluster_.ends()[i];
    if (MeaningOf(end) != EndMeaning::kLostWorker) continue;
    for (v1::WorkerStatus& worker : *status_.mutable_workers()) {
      if (worker.worker() != end.name.number || worker.state() == "left") continue;
      worker.set_state("dead");
      worker.set_failure(end.HowText() + (worker.failure().empty() ? "" : "; " + worker.failure()));
    }
  }
}

RunFacts RunWatch::FactsAt(absl::Time now) const {
  const auto is_live = [](const v1::ReaderStatus& reader) { return reader.state() == "live"; };
  return {.phase = status_.phase(),
          .in_phase = now - phase_since_,
          .ends = cluster_.ends(),
          .ends_before_phase = ends_before_status_,
          .workers_running = WorkersRunning(),
          .has_readers = std::ranges::any_of(status_.readers(), is_live),
          .finish_timeout = options_.finish_timeout,
          .without_workers = now - last_worker_seen_,
          .start_timeout = options_.start_timeout};
}

void RunWatch::WaitForCause() {
  const absl::Time deadline = SteadyNow() + kCausePatience;
  while (SteadyNow() < deadline && !ExplainsItself(*FindRootCause(cluster_.ends()))) {
    if (cluster_.Running(Role::kServer).empty() && WorkersRunning() == 0) return;
    if (stop_.stopped()) return;
    cluster_.WaitForChange(deadline - SteadyNow());
    cluster_.Poll();
  }
}

}  // namespace slipstream
