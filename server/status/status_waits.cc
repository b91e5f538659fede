#include "server/status/status_waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/status/round_outlook.h"
#include "server/status/stragglers.h"

namespace slipstream {
namespace {

// For how many seconds an empty round may stay unchanged before it counts as waiting.
constexpr double kEmptySecondsMax = 1;

bool IsLive(const StatusFacts::Worker& worker) {
  return worker.record.state == Membership::State::kLive;
}

/// Returns the workers that any shard's round waits for.
std::set<WorkerId> Awaited(const StatusFacts& facts) {
  std::set<WorkerId> awaited;
  for (const v1::ShardStatus& shard : facts.shards) {
    for (const uint32_t worker : shard.waiting_for()) awaited.insert(WorkerId{worker});
  }
  return awaited;
}

WorkerPace PaceOf(uint32_t worker, const ShardLines& lines) {
  WorkerPace pace;
  pace.worker = WorkerId{worker};
  bool is_first = true;
  for (const v1::ShardWorkerStatus* measured : lines.Of(worker)) {
    const absl::Duration step = absl::Seconds(measured->step_seconds());
    const absl::Duration holding = absl::Seconds(measured->holding_seconds());
    pace.steps = is_first ? measured->steps() : std::min(pace.steps, measured->steps());
    pace.step = is_first ? step : std::min(pace.step, step);
    pace.holding = is_first ? holding : std::min(pace.holding, holding);
    is_first = false;
  }
  return pace;
}

/// Returns the workers without which the round cannot close.
const google::protobuf::RepeatedField<uint32_t>& WaitingFor(const v1::ShardStatus& shard) {
  const auto& held_back_by = shard.guard().held_back_by();
  return held_back_by.empty() ? shard.waiting_for() : held_back_by;
}

OpenRoundFacts OpenRoundOf(const v1::ShardStatus& shard, const StatusFacts& facts) {
  OpenRoundFacts round;
  round.live_workers = facts.live_workers;
  round.gradients_missing = shard.round_gradients_missing();
  for (const uint32_t id : WaitingFor(shard)) {
    const auto worker = facts.workers.find(WorkerId{id});
    OpenRoundFacts::Awaited awaited = {.worker = WorkerId{id}, .is_live = false, .lease_left = {}};
    if (worker != facts.workers.end()) {
      awaited.is_live = IsLive(worker->second);
      awaited.lease_left = worker->second.lease_left;
      if (worker->second.is_stalled) awaited.stalled_for = worker->second.idle;
    }
    round.awaited.push_back(awaited);
  }
  round.is_held_back_by_guard = !shard.guard().held_back_by().empty();
  return round;
}

bool Waits(const v1::ShardStatus& shard) {
  if (shard.round_size() == 0) return false;  // It has no model yet.
  if (shard.round_contributions() + shard.round_excused() > 0) return true;
  return shard.round_unchanged_seconds() + shard.silent_seconds() >= kEmptySecondsMax;
}

}  // namespace

void AddStragglers(const StatusFacts& facts, const ShardLines& lines, v1::RunStatus& status) {
  const std::set<WorkerId> awaited = Awaited(facts);
  std::vector<WorkerPace> paces;
  for (v1::WorkerStatus& worker : *status.mutable_workers()) {
    WorkerPace pace = PaceOf(worker.worker(), lines);
    // If rounds wait for certain members, these owe a gradient.
    pace.owes_gradient =
        awaited.empty() ? facts.workers.at(pace.worker).has_work : awaited.contains(pace.worker);
    worker.set_step_seconds(absl::ToDoubleSeconds(pace.step));
    worker.set_holding_seconds(absl::ToDoubleSeconds(pace.holding));
    if (IsLive(facts.workers.at(pace.worker))) paces.push_back(pace);
  }
  if (facts.phase != Phase::kTraining) return;
  const std::map<WorkerId, std::string> stragglers = FindStragglers(paces);
  for (v1::WorkerStatus& worker : *status.mutable_workers()) {
    const auto found = stragglers.find(WorkerId{worker.worker()});
    if (found == stragglers.end()) continue;
    worker.set_is_straggler(true);
    worker.set_straggler_reason(found->second);
  }
}

void AddWaitingRounds(const StatusFacts& facts, v1::RunStatus& status) {
  if (facts.phase != Phase::kTraining && facts.phase != Phase::kDraining) return;
  for (const v1::ShardStatus& shard : facts.shards) {
    if (!Waits(shard)) continue;
    const OpenRoundFacts round = OpenRoundOf(shard, facts);
    v1::WaitingRound& line = *status.add_waiting_rounds();
    line.set_shard(shard.shard());
    line.set_version(shard.version() + 1);
    line.set_contributions(shard.round_contributions());
    line.set_round_size(shard.round_size());
    line.set_open_seconds(shard.round_open_seconds() + shard.silent_seconds());
    line.set_unchanged_seconds(shard.round_unchanged_seconds() + shard.silent_seconds());
    *line.mutable_waiting_for() = WaitingFor(shard);
    line.set_gradients_missing(round.gradients_missing);
    line.set_outlook(DescribeOutlook(round));
  }
}

}  // namespace slipstream
