#include "server/status/run_status.h"

#include <algorithm>
#include <string>

#include "common/settings/policy_rows.h"
#include "common/settings/worker_slowdown.h"
#include "common/wire/control_wire.h"
#include "proto/types.pb.h"
#include "server/core/shard/histogram.h"
#include "server/core/shard/lag_tracker.h"
#include "server/status/run_stage_wire.h"
#include "server/status/shard_lines.h"
#include "server/status/status_waits.h"

namespace slipstream {
namespace {

/// Adds up how often the guard engaged. All shards have the same guard.
void AddGuard(const v1::GuardStatus& shard, v1::GuardStatus& run) {
  run.set_action(shard.action());
  run.set_bound(shard.bound());
  run.set_rejected(run.rejected() + shard.rejected());
  run.set_dropped(run.dropped() + shard.dropped());
  run.set_scaled(run.scaled() + shard.scaled());
  run.set_rounds_held_back(run.rounds_held_back() + shard.rounds_held_back());
}

const char* StateName(Membership::State state) {
  switch (state) {
    case Membership::State::kLive:
      return "live";
    case Membership::State::kLeft:
      return "left";
    case Membership::State::kDead:
      return "dead";
  }
  return "unknown";
}

void AddShards(const std::vector<v1::ShardStatus>& shards, v1::RunStatus& status) {
  if (shards.empty()) return;
  for (const v1::ShardStatus& shard : shards) {
    *status.add_shards() = shard;
    if (shard.has_guard()) AddGuard(shard.guard(), *status.mutable_guard());
    for (const auto& [outcome, count] : shard.outcomes()) {
      if (IsRefusal(outcome)) (*status.mutable_refusals())[outcome] += count;
    }
  }
  *status.mutable_staleness() = MergeStaleness(shards);

  const v1::ShardStatus& first = shards.front();
  if (first.shard() != 0) return;
  status.set_updates(first.version());
  // Excuses and dropped gradients do not count as steps.
  status.set_pushes(first.staleness().count());
  status.set_examples(first.examples_applied());
  status.set_learning_rate(first.learning_rate());
  status.set_effective_learning_rate(first.effective_learning_rate());
}

void AddFiguresOfShards(const ShardLines& lines, v1::WorkerStatus& worker) {
  double sum = 0;
  uint64_t pushes = 0;
  for (const v1::ShardWorkerStatus* of_shard : lines.Of(worker.worker())) {
    sum += of_shard->mean_staleness() * double(of_shard->pushes());
    pushes += of_shard->pushes();
    worker.set_last_staleness(std::max(worker.last_staleness(), of_shard->last_staleness()));
  }
  if (pushes > 0) worker.set_mean_staleness(sum / double(pushes));
}

v1::WorkerStatus ToWire(WorkerId id, const StatusFacts::Worker& worker) {
  const v1::HeartbeatRequest& figures = worker.heartbeat;
  v1::WorkerStatus wire;
  wire.set_worker(Value(id));
  wire.set_incarnation(Value(worker.record.incarnation));
  wire.set_state(StateName(worker.record.state));
  wire.set_host(worker.record.host);
  wire.set_examples(figures.examples());
  wire.set_examples_per_second(figures.examples_per_second());
  wire.set_train_loss(figures.train_loss());
  if (figures.has_train_accuracy()) wire.set_train_accuracy(figures.train_accuracy());
  wire.set_compute_share(figures.compute_share());
  wire.set_communication_share(figures.communication_share());
  if (figures.has_nonfinite()) *wire.mutable_nonfinite() = figures.nonfinite();
  wire.set_communication_hidden(figures.communication_hidden());
  wire.set_overlap(figures.overlap());
  wire.set_steady_overlap(figures.steady_overlap());
  wire.set_split_pushes(figures.split_pushes());
  *wire.mutable_recent_steps() = figures.recent_steps();
  wire.set_lease_left_seconds(absl::ToDoubleSeconds(worker.lease_left));
  wire.set_failure(worker.record.failure);
  wire.set_registrations(worker.record.registrations);
  wire.set_losses(worker.record.losses);
  wire.set_idle_seconds(absl::ToDoubleSeconds(worker.idle));
  wire.set_is_stalled(worker.is_stalled);
  return wire;
}

void AddWorkers(const RunSpec& spec, const StatusFacts& facts, const ShardLines& lines,
                v1::RunStatus& status) {
  const bool has_shard_zero = !facts.shards.empty() && facts.shards.front().shard() == 0;
  for (const auto& [id, worker] : facts.workers) {
    v1::WorkerStatus& wire = *status.add_workers();
    wire = ToWire(id, worker);
    // Counted as RunStatus.pushes is.
    if (has_shard_zero) wire.set_pushes(lines.Of(wire.worker()).front()->pushes());
    AddFiguresOfShards(lines, wire);
    const WorkerSlowdown slowdown = spec.testing.SlowdownOf(id);
    if (!slowdown.is_none()) wire.set_slowdown(slowdown.ToText());
  }
}

/// Adds loss and accuracy on the latest examples. So workers that are gone count only if no live
/// worker has reported any.
void AddTrainingFigures(const StatusFacts& facts, v1::RunStatus& status) {
  const auto is_live = [](const StatusFacts::Worker& worker) {
    return worker.record.state == Membership::State::kLive;
  };
  const bool has_live = std::ranges::any_of(facts.workers, [&](const auto& entry) {
    return is_live(entry.second) && entry.second.heartbeat.recent_examples() > 0;
  });
  double loss = 0;
  std::optional<double> accuracy;
  double examples = 0;
  for (const auto& [id, worker] : facts.workers) {
    const v1::HeartbeatRequest& figures = worker.heartbeat;
    const auto weight = static_cast<double>(figures.recent_examples());
    // A weight of 0 must also silence a loss that is not a number.
    if (weight == 0 || (has_live && !is_live(worker))) continue;
    loss += weight * figures.train_loss();
    if (figures.has_train_accuracy()) {
      accuracy = accuracy.value_or(0) + weight * figures.train_accuracy();
    }
    examples += weight;
  }
  if (examples == 0) return;
  status.set_train_loss(loss / examples);
  if (accuracy) status.set_train_accuracy(*accuracy / examples);
}

void AddMissing(const RunSpec& spec, const StatusFacts& facts, v1::RunStatus& status) {
  if (!facts.missing.has_value()) return;
  v1::MissingMembers& missing = *status.mutable_missing();
  for (const ShardId shard : facts.missing->shards) {
    v1::MissingMembers::Server& server = *missing.add_servers();
    server.set_shard(Value(shard));
    const auto reported = std::ranges::find(facts.shards, Value(shard),
                                            [](const auto& report) { return report.shard(); });
    server.set_address(reported != facts.shards.end() ? reported->address()
                                                      : spec.cluster.servers.at(Value(shard)));
  }
  for (const WorkerId worker : facts.missing->workers) missing.add_workers(Value(worker));
  for (const AggregatorId& id : facts.missing->aggregators) {
    v1::MissingMembers::Aggregator& aggregator = *missing.add_aggregators();
    aggregator.set_group(id.group);
    aggregator.set_shard(Value(id.shard));
  }
  missing.set_more_workers(facts.missing->more_workers);
  missing.set_gone_seconds(absl::ToDoubleSeconds(facts.missing->gone_for));
  missing.set_fails_in_seconds(absl::ToDoubleSeconds(facts.missing->fails_in));
}

v1::EvaluationStatus ToWire(const Evaluation& evaluation, absl::Time now) {
  v1::EvaluationStatus wire;
  wire.set_number(evaluation.number);
  wire.set_epoch(evaluation.epoch);
  wire.set_epochs_measured(evaluation.epochs_measured);
  if (evaluation.test_accuracy) wire.set_test_accuracy(*evaluation.test_accuracy);
  wire.set_test_loss(evaluation.test_loss);
  wire.set_examples(evaluation.examples);
  for (Version version : evaluation.versions) wire.add_versions(Value(version));
  wire.set_seconds(evaluation.seconds);
  wire.set_final(evaluation.is_final);
  wire.set_model_file(evaluation.model_file);
  wire.set_model_host(evaluation.model_host);
  wire.set_model_failure(evaluation.model_failure);
  if (evaluation.came.has_value()) {
    wire.set_age_seconds(absl::ToDoubleSeconds(now - *evaluation.came));
  }
  return wire;
}

v1::RunEvent ToWire(const RunEvent& event) {
  v1::RunEvent wire;
  wire.set_number(event.number);
  wire.set_time_ms(event.time_ms);
  wire.set_kind(std::string(Name(event.kind)));
  wire.set_is_warning(event.is_warning);
  wire.set_text(event.text);
  if (event.worker.has_value()) wire.set_worker(Value(*event.worker));
  if (event.shard.has_value()) wire.set_shard(Value(*event.shard));
  return wire;
}

}  // namespace

bool IsRefusal(const std::string& outcome) {
  v1::PushOutcome value = v1::PUSH_OUTCOME_UNSPECIFIED;
  return v1::PushOutcome_Parse(outcome, &value) && value >= v1::FENCED;
}

v1::ReaderStatus DescribeReader(const Readers::Reader& reader, absl::Time now) {
  const ReaderReport& report = reader.report;
  v1::ReaderStatus status;
  status.set_state(reader.is_live ? "live" : "gone");
  status.set_host(report.host);
  status.set_name(report.name);
  if (report.held.has_value()) status.set_version(Value(*report.held));
  status.set_label(report.label);
  if (reader.behind_since.has_value()) {
    status.set_lag_seconds(absl::ToDoubleSeconds(now - *reader.behind_since));
  }
  const double taken = std::max(1.0, static_cast<double>(report.taken));
  status.set_lag_mean(static_cast<double>(report.lag_sum) / taken);
  status.set_lag_highest(report.lag_highest);
  if (report.lag_max.has_value()) status.set_lag_max(*report.lag_max);
  status.set_taken(report.taken);
  status.set_lost(report.lost);
  status.set_bytes(report.bytes);
  status.set_bytes_per_second(report.bytes_per_second);
  status.set_silent_seconds(absl::ToDoubleSeconds(now - reader.last_heard));
  return status;
}

v1::StalenessStatus MergeStaleness(const std::vector<v1::ShardStatus>& shards) {
  v1::StalenessStatus merged;
  double sum = 0;
  double window_sum = 0;
  int counting = 0;
  for (const v1::ShardStatus& shard : shards) {
    const v1::StalenessStatus& part = shard.staleness();
    if (part.count() == 0) continue;
    merged.set_count(merged.count() + part.count());
    merged.set_max(std::max(merged.max(), part.max()));
    sum += part.mean() * double(part.count());
    window_sum += part.window_mean();
    ++counting;
    while (merged.histogram_size() < part.histogram_size()) merged.add_histogram(0);
    for (int sigma = 0; sigma < part.histogram_size(); ++sigma) {
      merged.set_histogram(sigma, merged.histogram(sigma) + part.histogram(sigma));
    }
  }
  if (counting == 0) return merged;
  merged.set_mean(sum / double(merged.count()));
  merged.set_window_mean(window_sum / counting);
  merged.set_p50(LagTracker::PercentileOf(merged.histogram(), 0.50, merged.max()));
  merged.set_p99(LagTracker::PercentileOf(merged.histogram(), 0.99, merged.max()));
  for (double share : Distribution(merged.histogram())) merged.add_cdf(share);
  return merged;
}

v1::RunStatus MergeStatus(const RunSpec& spec, const StatusFacts& facts) {
  v1::RunStatus status;
  status.set_name(spec.name);
  status.set_plaintext_accepted(spec.security.accept_plaintext_risk &&
                                !spec.security.is_encrypted());
  status.set_run(facts.run);
  status.set_phase(ToWire(facts.phase));
  status.set_failure(facts.failure);
  status.set_state_not_kept(facts.not_kept);
  status.set_ended_by(facts.ended_by);
  for (const RunStage& stage : facts.stages) *status.add_stages() = ToWire(stage);
  status.set_stage(facts.stage);
  const v1::RunStage& present = status.stages(static_cast<int>(facts.stage));
  status.set_policy(present.policy());
  *status.mutable_policy_parameters() = present.parameters();
  status.set_round_size(facts.stages[facts.stage].consistency.round_size(spec.cluster.workers));
  status.set_workers_expected(spec.cluster.workers);
  status.set_epochs_total(spec.training.epochs);
  status.set_seconds_max(spec.training.max_seconds);
  if (spec.durability.saves()) {
    status.set_checkpoint_interval_seconds(absl::ToDoubleSeconds(spec.durability.interval));
  }
  status.set_batches_total(facts.batches_total);
  status.set_batches_done(facts.batches_done);
  status.set_epochs(facts.epochs_done);
  status.set_view(Value(facts.view));
  status.set_parameters(facts.parameters);
  status.set_weights_sha256(facts.weights_sha256);
  AddShards(facts.shards, status);
  status.set_version_skew(facts.version_skew);
  const ShardLines lines(facts.shards);
  AddWorkers(spec, facts, lines, status);
  AddTrainingFigures(facts, status);
  AddStragglers(facts, lines, status);
  AddWaitingRounds(facts, status);
  AddMissing(spec, facts, status);
  for (const v1::ReaderStatus& reader : facts.readers) *status.add_readers() = reader;
  status.set_readers_unlisted(static_cast<uint32_t>(facts.readers_unlisted));
  for (const v1::AggregatorStatus& aggregator : facts.aggregators) {
    *status.add_aggregators() = aggregator;
  }
  for (const Evaluation& evaluation : facts.evaluations) {
    *status.add_evaluations() = ToWire(evaluation, facts.now);
  }
  for (const RunEvent& event : facts.events) *status.add_events() = ToWire(event);

  const double seconds = absl::ToDoubleSeconds(facts.training_time);
  status.set_seconds(seconds);
  if (seconds > 0) status.set_examples_per_second(double(status.examples()) / seconds);
  return status;
}

}  // namespace slipstream
