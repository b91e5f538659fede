#include "server/service/status_waits.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "server/core/round_outlook.h"
#include "server/core/stragglers.h"

namespace slipstream {
namespace {

// An empty round waits for nobody yet, unless nobody comes.
constexpr double kEmptySecondsMax = 1;

bool IsLive(const RunFacts::Worker& worker) {
  return worker.record.state == Membership::State::kLive;
}

bool IsAwaited(uint32_t worker, const RunFacts& facts) {
  return std::ranges::any_of(facts.shards, [worker](const v1::ShardStatus& shard) {
    return std::ranges::find(shard.waiting_for(), worker) != shard.waiting_for().end();
  });
}

/// What this shard has measured; nothing of a worker that it does not know.
v1::ShardWorkerStatus MeasuredBy(const v1::ShardStatus& shard, uint32_t worker) {
  for (const v1::ShardWorkerStatus& line : shard.workers()) {
    if (line.worker() == worker) return line;
  }
  return {};
}

bool OwesGradient(uint32_t worker, const RunFacts& facts) {
  // Only synchronous rounds name members.
  const bool names_members =
      std::ranges::any_of(facts.shards, [](const auto& shard) { return shard.waiting_for_size(); });
  return names_members ? IsAwaited(worker, facts) : facts.workers.at(WorkerId{worker}).has_work;
}

WorkerPace PaceOf(uint32_t worker, const RunFacts& facts) {
  WorkerPace pace;
  pace.worker = WorkerId{worker};
  pace.owes_gradient = OwesGradient(worker, facts);
  bool is_first = true;
  for (const v1::ShardStatus& shard : facts.shards) {
    const v1::ShardWorkerStatus measured = MeasuredBy(shard, worker);
    const absl::Duration step = absl::Seconds(measured.step_seconds());
    const absl::Duration holding = absl::Seconds(measured.holding_seconds());
    pace.steps = is_first ? measured.steps() : std::min(pace.steps, measured.steps());
    pace.step = is_first ? step : std::min(pace.step, step);
    pace.holding = is_first ? holding : std::min(pace.holding, holding);
    is_first = false;
  }
  return pace;
}

/// Of a synchronous round or one that the guard holds back: without whom it cannot close.
const google::protobuf::RepeatedField<uint32_t>& WaitingFor(const v1::ShardStatus& shard) {
  const auto& held_back_by = shard.guard().held_back_by();
  return held_back_by.empty() ? shard.waiting_for() : held_back_by;
}

OpenRoundFacts OpenRoundOf(const v1::ShardStatus& shard, const RunFacts& facts) {
  OpenRoundFacts round;
  round.live_workers = facts.live_workers;
  const uint32_t has = std::min(shard.round_contributions(), shard.round_size());
  round.gradients_missing = shard.round_size() - has;
  for (const uint32_t id : WaitingFor(shard)) {
    const auto worker = facts.workers.find(WorkerId{id});
    OpenRoundFacts::Awaited awaited = {.worker = WorkerId{id}, .is_live = false, .lease_left = {}};
    if (worker != facts.workers.end()) {
      awaited.is_live = IsLive(worker->second);
      awaited.lease_left = worker->second.lease_left;
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

void AddStragglers(const RunFacts& facts, v1::RunStatus& status) {
  std::vector<WorkerPace> paces;
  for (v1::WorkerStatus& worker : *status.mutable_workers()) {
    const WorkerPace pace = PaceOf(worker.worker(), facts);
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

void AddWaitingRounds(const RunSpec& spec, const RunFacts& facts, v1::RunStatus& status) {
  if (facts.phase != Phase::kTraining && facts.phase != Phase::kDraining) return;
  const bool is_synchronous = spec.consistency.policy == ConsistencySpec::Policy::kHardsync;
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
    if (!is_synchronous) line.set_gradients_missing(round.gradients_missing);
    line.set_outlook(DescribeOutlook(round));
  }
}

}  // namespace slipstream
