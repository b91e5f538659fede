#include "server/status/shard_report.h"

#include <map>
#include <string>
#include <utility>

#include "common/settings/run_spec.h"
#include "server/core/shard/histogram.h"

namespace slipstream {
namespace {

void DescribeWorkers(const ShardMachine& machine, v1::ShardStatus& status) {
  std::map<WorkerId, v1::ShardWorkerStatus> lines;
  for (const auto& [worker, lag] : machine.lag().workers()) {
    v1::ShardWorkerStatus& line = lines[worker];
    line.set_pushes(lag.pushes);
    line.set_last_staleness(lag.last);
    line.set_mean_staleness(static_cast<double>(lag.sum) / static_cast<double>(lag.pushes));
  }
  // Members without a gradient in any round have a line, too.
  for (const Member& member : machine.view().members) {
    v1::ShardWorkerStatus& line = lines[member.worker];
    line.set_incarnation(Value(member.incarnation));
    line.set_last_sequence(Value(machine.members().At(member.worker).expected()) - 1);
  }
  for (auto& [worker, line] : lines) {
    line.set_worker(Value(worker));
    *status.add_workers() = std::move(line);
  }
}

void DescribeRound(const ShardMachine& machine, v1::ShardStatus& status) {
  status.set_round_contributions(machine.round().contributions());
  status.set_round_excused(machine.round().excused());
  status.set_round_size(machine.round_size());
  const NamedLack lack = machine.Lacks();
  status.set_round_gradients_missing(lack.gradients);
  if (lack.is_held_back) return;  // DescribeGuard says by whom.
  for (const WorkerId worker : lack.members) status.add_waiting_for(Value(worker));
}

void DescribeGuard(const ShardMachine& machine, v1::ShardStatus& status) {
  if (machine.guard().action == StalenessGuardSpec::Action::kNone) return;
  v1::GuardStatus& guard = *status.mutable_guard();
  guard.set_action(std::string(ActionName(machine.guard().action)));
  guard.set_bound(machine.guard().bound);
  guard.set_rejected(machine.guard_counts().rejected);
  guard.set_dropped(machine.guard_counts().dropped);
  guard.set_scaled(machine.guard_counts().scaled);
  guard.set_rounds_held_back(machine.guard_counts().rounds_held_back);
  const NamedLack lack = machine.Lacks();
  if (!lack.is_held_back) return;
  for (const WorkerId worker : lack.members) guard.add_held_back_by(Value(worker));
}

void DescribeComposites(const LagTracker& lag, v1::ShardStatus& status) {
  status.set_composites(lag.composites());
  status.set_composite_parts(lag.composite_parts());
  status.set_composite_staleness(lag.composite_mean());
}

}  // namespace

v1::ShardProgress ProgressOf(const ShardMachine& machine) {
  v1::ShardProgress wire;
  wire.set_version(Value(machine.published()));
  wire.set_batches_of_rounds(machine.batches_of_rounds());
  for (const Member& member : machine.view().members) {
    const MemberRecord::Newest newest = machine.NewestOf(member.worker, member.incarnation);
    if (newest.batch_end == 0) continue;
    v1::NewestPush& push = *wire.add_newest_pushes();
    push.set_worker(Value(member.worker));
    push.set_incarnation(Value(member.incarnation));
    push.set_batch_end(newest.batch_end);
    push.set_clock(Value(newest.clock));
  }
  return wire;
}

void DescribeTimes(const RoundClock& round, const StepTimes& steps, absl::Time now,
                   v1::ShardStatus& status) {
  status.set_round_open_seconds(absl::ToDoubleSeconds(round.open(now)));
  status.set_round_unchanged_seconds(absl::ToDoubleSeconds(round.unchanged(now)));
  round.closed().Describe(*status.mutable_round_times());
  const std::map<WorkerId, StepTimes::Pace> paces = steps.Paces(now);
  for (v1::ShardWorkerStatus& line : *status.mutable_workers()) {
    const auto pace = paces.find(WorkerId{line.worker()});
    if (pace == paces.end()) continue;
    line.set_steps(pace->second.steps);
    line.set_step_seconds(absl::ToDoubleSeconds(pace->second.step));
    line.set_holding_seconds(absl::ToDoubleSeconds(pace->second.holding));
    line.set_idle_seconds(absl::ToDoubleSeconds(pace->second.idle));
  }
}

v1::StalenessStatus DescribeStaleness(const LagTracker& lag) {
  v1::StalenessStatus status;
  status.set_count(lag.gradients());
  status.set_mean(lag.mean());
  status.set_window_mean(lag.window_mean());
  status.set_p50(LagTracker::PercentileOf(lag.histogram(), 0.50, lag.max()));
  status.set_p99(LagTracker::PercentileOf(lag.histogram(), 0.99, lag.max()));
  status.set_max(lag.max());
  for (uint64_t count : lag.histogram()) status.add_histogram(count);
  for (double share : Distribution(lag.histogram())) status.add_cdf(share);
  return status;
}

v1::ShardStatus DescribeShard(const ShardMachine& machine) {
  v1::ShardStatus status;
  status.set_version(Value(machine.published()));
  status.set_view(Value(machine.view().number));
  status.set_stage(machine.stage());
  status.set_learning_rate(machine.current_learning_rate());
  status.set_effective_learning_rate(machine.effective_learning_rate());
  status.set_examples_applied(machine.examples_applied());
  *status.mutable_staleness() = DescribeStaleness(machine.lag());
  DescribeComposites(machine.lag(), status);
  for (const LagTracker::VectorClock& clock : machine.lag().vector_clocks()) {
    v1::VectorClock& line = *status.add_vector_clocks();
    line.set_version(Value(clock.version));
    for (Version base : clock.bases) line.add_base_versions(Value(base));
    line.set_mean_staleness(clock.mean_staleness);
  }
  for (const auto& [outcome, count] : machine.outcomes()) {
    (*status.mutable_outcomes())[std::string(Name(outcome))] = count;
  }
  status.set_bytes_queued(machine.bytes_queued());
  status.set_bytes_queued_max(machine.bytes_queued_max());
  status.set_parked_pulls(static_cast<uint32_t>(machine.WaitingPulls()));
  DescribeGuard(machine, status);
  status.set_parked_calls(static_cast<uint32_t>(machine.waiting()));
  status.set_pulls_under_way(machine.pulls_under_way());
  DescribeRound(machine, status);
  DescribeWorkers(machine, status);
  return status;
}

}  // namespace slipstream
