#include "server/metrics/run_metrics.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/alarms/run_alarms.h"

namespace slipstream {
namespace {

using Labels = MetricSet::Labels;

/// Adds one series for each of `names`, which is 1 for the one that is `now`, and 0 for the others,
/// so that a query finds a series whatever is the case.
template <typename Names>
void AddStates(std::string_view name, std::string_view help, const Labels& labels,
               const std::string& label, const Names& names, std::string_view now,
               MetricSet& metrics) {
  for (const std::string_view state : names) {
    Labels with = labels;
    with.emplace_back(label, std::string(state));
    metrics.Gauge(name, help, state == now ? 1 : 0, std::move(with));
  }
}

void AddPhase(const v1::RunStatus& status, MetricSet& metrics) {
  std::vector<std::string_view> phases;
  for (int phase = v1::Phase_MIN + 1; phase <= v1::Phase_MAX; ++phase) {
    phases.push_back(v1::Phase_Name(static_cast<v1::Phase>(phase)));
  }
  AddStates("run_phase", "1 for the phase that the run is in.", {}, "phase", phases,
            v1::Phase_Name(status.phase()), metrics);
  const bool has_failed = status.phase() == v1::FAILED;
  metrics.Gauge("run_failed", "1 if the run has failed.", has_failed ? 1 : 0);
}

void AddProgress(const v1::RunStatus& status, MetricSet& metrics) {
  metrics.Counter("run_training_seconds_total", "Time spent on training.", status.seconds());
  metrics.Counter("run_examples_total", "Examples that became part of the model.",
                  static_cast<double>(status.examples()));
  metrics.Counter("run_pushes_total", "Gradients that joined a round on shard 0.",
                  static_cast<double>(status.pushes()));
  metrics.Gauge("run_batches_done", "Mini-batches that are done.",
                static_cast<double>(status.batches_done()));
  metrics.Gauge("run_batches", "Mini-batches that the run has.",
                static_cast<double>(status.batches_total()));
  metrics.Gauge("run_epoch", "Completed passes over the training data.", status.epochs());
  metrics.Gauge("run_stage", "The place, from 0, of the run's stage.", status.stage());
  metrics.Gauge("run_learning_rate", "The learning rate before the schedule.",
                status.learning_rate());
  metrics.Gauge("run_effective_learning_rate",
                "The learning rate times the mean factor of staleness compensation.",
                status.effective_learning_rate());
  metrics.Gauge("run_version_skew", "How far the shards' versions are apart.",
                static_cast<double>(status.version_skew()));
  if (status.checkpoint_interval_seconds() > 0) {
    metrics.Gauge("checkpoint_interval_seconds", "The time from one checkpoint to the next.",
                  status.checkpoint_interval_seconds());
  }
  metrics.Gauge("run_workers_expected", "As many workers as the run was started for.",
                status.workers_expected());
  if (status.pushes() > 0) {
    metrics.Gauge("run_train_loss", "The mean loss of the workers' last steps.",
                  status.train_loss());
  }
}

void AddEvaluation(const v1::RunStatus& status, MetricSet& metrics) {
  const auto& all = status.evaluations();
  const auto failures = std::ranges::count_if(
      all, [](const v1::EvaluationStatus& one) { return !one.model_failure().empty(); });
  metrics.Gauge("run_models_not_saved", "Measured weights that could not be saved.",
                static_cast<double>(failures));
  if (all.empty()) return;
  const v1::EvaluationStatus& last = *all.rbegin();
  metrics.Gauge("run_test_loss", "The loss on the test set, as measured last.", last.test_loss());
  if (last.has_test_accuracy()) {
    metrics.Gauge("run_test_accuracy_ratio", "The accuracy on the test set, as measured last.",
                  last.test_accuracy());
  }
  if (last.has_age_seconds()) {
    metrics.Gauge("run_evaluation_age_seconds", "How long ago that was.", last.age_seconds());
  }
}

void AddAlarms(const v1::RunStatus& status, MetricSet& metrics) {
  const std::vector<Alarm> alarms = AlarmsOf(status);
  for (const auto& [kind, name] : AlarmKinds()) {
    const auto count = std::ranges::count(alarms, kind, &Alarm::kind);
    metrics.Gauge("run_alarms", "What needs attention, as psctl status says it.",
                  static_cast<double>(count), {{"alarm", std::string(name)}});
  }
}

void AddMissing(const v1::RunStatus& status, MetricSet& metrics) {
  const v1::MissingMembers& missing = status.missing();
  const std::string help = "Members without whom the run cannot go on.";
  metrics.Gauge("run_missing_members", help, missing.servers_size(), {{"role", "server"}});
  metrics.Gauge("run_missing_members", help,
                missing.workers_size() + static_cast<double>(missing.more_workers()),
                {{"role", "worker"}});
  metrics.Gauge("run_missing_members", help, missing.aggregators_size(), {{"role", "aggregator"}});
  if (!status.has_missing()) return;
  metrics.Gauge("run_fails_in_seconds", "When the run fails if they do not come.",
                missing.fails_in_seconds());
}

void AddWorker(const v1::WorkerStatus& worker, MetricSet& metrics) {
  const Labels labels = {{"worker", std::to_string(worker.worker())}};
  constexpr std::array<std::string_view, 3> kStates = {"live", "left", "dead"};
  AddStates("worker_state", "1 for the state that the worker is in.", labels, "state", kStates,
            worker.state(), metrics);
  metrics.Counter("worker_pushes_total", "Gradients of the worker that joined a round on shard 0.",
                  static_cast<double>(worker.pushes()), labels);
  metrics.Counter("worker_registrations_total", "How often the worker has registered.",
                  static_cast<double>(worker.registrations()), labels);
  metrics.Counter("worker_losses_total", "How often it was lost.",
                  static_cast<double>(worker.losses()), labels);
  metrics.Counter("worker_nonfinite_total",
                  "Mini-batches that it left out, as a loss or a gradient was not finite.",
                  static_cast<double>(worker.nonfinite().total()), labels);
  if (worker.state() != "live") return;
  metrics.Gauge("worker_examples_per_second", "Examples that it computes gradients of.",
                worker.examples_per_second(), labels);
  metrics.Gauge("worker_step_seconds", "How long a step takes it, without waiting for others.",
                worker.step_seconds(), labels);
  metrics.Gauge("worker_is_straggler", "1 if it is much slower than the others.",
                worker.is_straggler() ? 1 : 0, labels);
  metrics.Gauge("worker_is_stalled", "1 if it lives and has been idle for longer than usual.",
                worker.is_stalled() ? 1 : 0, labels);
  metrics.Gauge("worker_idle_seconds",
                "Since when it has neither fetched, pushed, computed nor measured.",
                worker.idle_seconds(), labels);
  metrics.Gauge("worker_compute_share_ratio", "The share of its time that it computes.",
                worker.compute_share(), labels);
  metrics.Gauge("worker_communication_share_ratio", "The share of its time that it communicates.",
                worker.communication_share(), labels);
  metrics.Gauge("worker_overlap_ratio",
                "Computing, over computing and communication that was not hidden.",
                worker.overlap(), labels);
  metrics.Gauge("worker_lease_left_seconds", "When it counts as lost if it stays silent.",
                worker.lease_left_seconds(), labels);
  metrics.Gauge("worker_staleness", "The staleness of its last gradient.",
                static_cast<double>(worker.last_staleness()), labels);
  metrics.Gauge("worker_mean_staleness", "The mean staleness of its gradients.",
                worker.mean_staleness(), labels);
}

void AddReader(const v1::ReaderStatus& reader, MetricSet& metrics) {
  const Labels labels = {{"reader", std::to_string(reader.reader())}};
  metrics.Gauge("reader_lag_versions", "Versions published since the one that it holds.",
                static_cast<double>(reader.lag()), labels);
  metrics.Gauge("reader_lag_seconds", "How long ago the first of these was.", reader.lag_seconds(),
                labels);
  metrics.Gauge("reader_is_awaited", "1 if workers wait for it.", reader.is_awaited() ? 1 : 0,
                labels);
  metrics.Counter("reader_versions_total", "Versions that it has taken.",
                  static_cast<double>(reader.taken()), labels);
  metrics.Counter("reader_versions_lost_total",
                  "Versions that it lost on the way, as servers did not keep them long enough.",
                  static_cast<double>(reader.lost()), labels);
  metrics.Counter("reader_received_bytes_total", "Bytes of values that it was sent.",
                  static_cast<double>(reader.bytes()), labels);
  if (!reader.has_version()) return;
  metrics.Gauge("reader_version", "The version of shard 0 that it holds.",
                static_cast<double>(reader.version()), labels);
}

}  // namespace

void AddRunMetrics(const v1::RunStatus& status, MetricSet& metrics) {
  metrics.Gauge("run_info", "Always 1: what the run is.", 1, {{"policy", status.policy()}});
  AddPhase(status, metrics);
  AddProgress(status, metrics);
  AddEvaluation(status, metrics);
  AddMissing(status, metrics);
  AddAlarms(status, metrics);
  for (const v1::WorkerStatus& worker : status.workers()) AddWorker(worker, metrics);
  for (const v1::ReaderStatus& reader : status.readers()) AddReader(reader, metrics);
}

}  // namespace slipstream
