#include "server/service/shard_report.h"

#include <map>
#include <string>
#include <utility>

#include "common/run/run_spec.h"
#include "server/core/histogram.h"

namespace slipstream {
namespace {

void DescribeWorkers(const ShardCore& core, v1::ShardStatus& status) {
  std::map<WorkerId, v1::ShardWorkerStatus> lines;
  for (const auto& [worker, lag] : core.lag().workers()) {
    v1::ShardWorkerStatus& line = lines[worker];
    line.set_pushes(lag.pushes);
    line.set_last_staleness(lag.last);
    line.set_mean_staleness(static_cast<double>(lag.sum) / static_cast<double>(lag.pushes));
  }
  // Also of those without a gradient in any round: the coordinator must know what was dropped, too.
  for (const Member& member : core.view().members) {
    v1::ShardWorkerStatus& line = lines[member.worker];
    line.set_incarnation(Value(member.incarnation));
    line.set_last_sequence(Value(core.members().At(member.worker).expected()) - 1);
    line.set_newest_batch_end(core.NewestBatchEnd(member.worker, member.incarnation));
  }
  for (auto& [worker, line] : lines) {
    line.set_worker(Value(worker));
    *status.add_workers() = std::move(line);
  }
}

void DescribeRound(const ShardCore& core, v1::ShardStatus& status) {
  status.set_round_contributions(core.round().contributions());
  status.set_round_excused(core.round().excused());
  status.set_round_size(core.round_size());
  for (WorkerId worker : core.Awaited()) status.add_waiting_for(Value(worker));
}

void DescribeGuard(const ShardCore& core, v1::ShardStatus& status) {
  if (core.guard().action == StalenessGuardSpec::Action::kNone) return;
  v1::GuardStatus& guard = *status.mutable_guard();
  guard.set_action(std::string(ActionName(core.guard().action)));
  guard.set_bound(core.guard().bound);
  guard.set_rejected(core.guard_counts().rejected);
  guard.set_dropped(core.guard_counts().dropped);
  guard.set_scaled(core.guard_counts().scaled);
  guard.set_rounds_held_back(core.guard_counts().rounds_held_back);
  for (WorkerId worker : core.HeldBackBy()) guard.add_held_back_by(Value(worker));
}

}  // namespace

void DescribeTimes(const RoundClock& round, const StepTimes& steps, absl::Time now,
                   v1::ShardStatus& status) {
  status.set_round_open_seconds(absl::ToDoubleSeconds(round.open(now)));
  status.set_round_unchanged_seconds(absl::ToDoubleSeconds(round.unchanged(now)));
  const std::map<WorkerId, StepTimes::Pace> paces = steps.Paces(now);
  for (v1::ShardWorkerStatus& line : *status.mutable_workers()) {
    const auto pace = paces.find(WorkerId{line.worker()});
    if (pace == paces.end()) continue;
    line.set_steps(pace->second.steps);
    line.set_step_seconds(absl::ToDoubleSeconds(pace->second.step));
    line.set_holding_seconds(absl::ToDoubleSeconds(pace->second.holding));
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

v1::ShardStatus DescribeShard(const ShardCore& core) {
  v1::ShardStatus status;
  status.set_version(Value(core.published()));
  status.set_view(Value(core.view().number));
  status.set_learning_rate(core.current_learning_rate());
  status.set_effective_learning_rate(core.effective_learning_rate());
  status.set_examples_applied(core.examples_applied());
  status.set_batches_of_rounds(core.batches_of_rounds());
  *status.mutable_staleness() = DescribeStaleness(core.lag());
  for (const LagTracker::VectorClock& clock : core.lag().vector_clocks()) {
    v1::VectorClock& line = *status.add_vector_clocks();
    line.set_version(Value(clock.version));
    for (Version base : clock.bases) line.add_base_versions(Value(base));
    line.set_mean_staleness(clock.mean_staleness);
  }
  for (const auto& [outcome, count] : core.outcomes()) {
    (*status.mutable_outcomes())[std::string(Name(outcome))] = count;
  }
  status.set_bytes_queued(core.bytes_queued());
  status.set_bytes_queued_max(core.bytes_queued_max());
  status.set_parked_pulls(static_cast<uint32_t>(core.ParkedPulls()));
  DescribeGuard(core, status);
  status.set_parked_calls(static_cast<uint32_t>(core.parked()));
  status.set_pulls_under_way(core.pulls_under_way());
  DescribeRound(core, status);
  DescribeWorkers(core, status);
  return status;
}

}  // namespace slipstream
