#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "tests/simulation/checkers.h"
#include "tests/simulation/gradients.h"

namespace slipstream {
namespace {

using Doers = std::map<uint64_t, std::vector<Incarnation>>;  // By mini-batch.

Doers DoersAt(const Evidence& evidence, size_t shard) {
  Doers done;
  for (const auto& [version, entries] : evidence.entries[shard]) {
    for (const Entry& entry : entries) {
      if (entry.push == nullptr) continue;
      const PushMade& made = entry.push->made;
      ForEachBatch(made.batches,
                   [&](uint64_t batch) { done[batch].push_back(made.push.incarnation); });
    }
  }
  return done;
}

/// Returns whether a worker that died had brought the mini-batch to a shard, so that it was not
/// handed out again.
bool DeadDidIt(const std::vector<Doers>& shards, const Evidence& evidence, uint64_t batch) {
  if (evidence.lost_with_dead.contains(batch)) return true;
  for (const Doers& done : shards) {
    const auto by = done.find(batch);
    if (by == done.end()) continue;
    for (const Incarnation one : by->second) {
      if (evidence.died.contains(one)) return true;
    }
  }
  return false;
}

bool NobodyDidIt(const std::vector<Doers>& shards, uint64_t batch) {
  return std::ranges::none_of(shards, [batch](const Doers& done) { return done.contains(batch); });
}

/// Returns whether a shard may lack a mini-batch that others have. With rounds, that is a
/// mini-batch of a worker that died in the round, except on the first shard, which names it again.
/// Under a guard, it is one that the shard dropped, or refused while another shard took it. A guard
/// that blocks refuses nothing that it knew to be in flight. Without rounds, a shard that went on
/// from a checkpoint lacks what it lost; with them, all shards went on from one version, and do
/// again what came after it.
bool MayLack(const Scenario& scenario, const Evidence& evidence, size_t shard, uint64_t batch) {
  using Action = StalenessGuardSpec::Action;
  if (scenario.HasRounds(scenario.StageOfBatch(batch))) return shard > 0 && !evidence.died.empty();
  if (evidence.lost.contains({ShardId{static_cast<uint32_t>(shard)}, batch})) return true;
  const Action action = scenario.guard().action;
  const bool refuses = action == Action::kReject;
  // A mini-batch that all shards refuse is computed again, unless the next one is in flight.
  const bool loses_refused = refuses && scenario.run.training.pipeline_depth > 1;
  return action == Action::kDrop || (refuses && scenario.shards > 1) || loses_refused;
}

}  // namespace

void CheckWork(const Scenario& scenario, const Evidence& evidence, Findings& findings) {
  std::vector<Doers> shards;
  for (size_t shard = 0; shard < evidence.entries.size(); ++shard) {
    shards.push_back(DoersAt(evidence, shard));
  }
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    Doers& done = shards[shard];
    for (uint64_t batch = 0; batch < scenario.batches_total(); ++batch) {
      // If rounds may close without some members, each shard does so on its own. The first shard
      // determines which mini-batches are done.
      const uint32_t spare = scenario.SpareOf(scenario.StageOfBatch(batch));
      if (spare > 0 && shard > 0) continue;
      const std::vector<Incarnation> by =
          done.contains(batch) ? done[batch] : std::vector<Incarnation>();
      // In the round in which work ended, a push that came late to the first shard is not named
      // again.
      const bool ends_with_late = evidence.ended_early && spare > 0;
      const bool is_excused = ends_with_late || MayLack(scenario, evidence, shard, batch) ||
                              DeadDidIt(shards, evidence, batch) ||
                              (evidence.ended_early && NobodyDidIt(shards, batch));
      // If several answers were given, it is not always known which one was used, and then a base
      // may be gone.
      const ShardId id{static_cast<uint32_t>(shard)};
      const bool lost_its_base =
          RowOf(scenario.run.optimizer.staleness_scaling).uses_base_weights &&
          evidence.too_stale.contains({id, batch});
      if (by.empty() && !is_excused && !lost_its_base) {
        findings.Add("shard {}: mini-batch {} was never done", shard, batch);
      }
      size_t living = 0;
      for (const Incarnation one : by) living += evidence.died.contains(one) ? 0 : 1;
      if (living > 1 || (by.size() > 1 && evidence.died.empty())) {
        findings.Add("shard {}: mini-batch {} was done {} times, {} times by living workers", shard,
                     batch, by.size(), living);
      }
    }
    if (!done.empty() && done.rbegin()->first >= scenario.batches_total()) {
      findings.Add("shard {}: more mini-batches than there are", shard);
    }
  }
}

namespace {

/// Recomputes the stop conditions from the events that the coordinator was told of.
class Stop {
 public:
  Stop(const Scenario& scenario, Findings& findings) : scenario_(scenario), findings_(findings) {}

  void OnPhase(const PhaseMade& made) {
    if (made.phase == Phase::kTraining && !began_.has_value()) began_ = made.time;
  }
  /// A measurement after the end of the work counts if the shards then go back, and work goes on.
  void OnAccuracy(double accuracy) { is_reached_ = IsTarget(accuracy); }

  /// The time during which the coordinator was away does not count.
  void OnReturned() { knows_time_ = false; }
  void OnEnd(const WorkEnded& end) {
    if (!IsTrue(end)) findings_.Add("work ends for a reason that is none");
    if (knows_time_ && TimeIsUp(end.time - kTick) && end.reason != EndReason::kMaxSeconds) {
      findings_.Add("work does not end when its time is up");
    }
    if (is_reached_ && end.reason != EndReason::kTargetAccuracy) {
      findings_.Add("work does not end when its target is reached");
    }
  }

 private:
  // The coordinator checks the time every 20 ms.
  static constexpr absl::Duration kTick = absl::Milliseconds(21);

  bool IsTarget(double accuracy) const {
    const double target = scenario_.run.training.target_accuracy;
    return target > 0 && accuracy >= target;
  }
  bool TimeIsUp(absl::Time now) const {
    const double seconds = scenario_.run.training.max_seconds;
    return seconds > 0 && began_.has_value() && now - *began_ >= absl::Seconds(seconds);
  }

  bool IsTrue(const WorkEnded& end) const {
    const uint32_t steps = scenario_.batches_per_epoch() * scenario_.run.training.epochs;
    switch (end.reason) {
      case EndReason::kEpochs:
        return scenario_.batches_total() == steps;
      case EndReason::kMaxSteps:
        return scenario_.batches_total() < steps;
      case EndReason::kMaxSeconds:
        return TimeIsUp(end.time);
      case EndReason::kTargetAccuracy:
        return is_reached_;
      case EndReason::kInterrupted:
      case EndReason::kWorker:
      case EndReason::kTooFewWorkers:
      case EndReason::kDiverged:
        return false;  // Nobody in a simulation asks for the end, or needs more than one worker.
    }
    return false;
  }

  const Scenario& scenario_;
  Findings& findings_;
  std::optional<absl::Time> began_;
  bool knows_time_ = true;
  bool is_reached_ = false;
};

}  // namespace

void CheckStop(const Scenario& scenario, const History& history, Findings& findings) {
  Stop stop(scenario, findings);
  for (const Event& event : history.events) {
    if (const auto* phase = std::get_if<PhaseMade>(&event)) {
      stop.OnPhase(*phase);
    } else if (const auto* taken = std::get_if<AccuracyTaken>(&event)) {
      stop.OnAccuracy(taken->accuracy);
    } else if (std::holds_alternative<CoordinatorReturned>(event)) {
      stop.OnReturned();
    } else if (const auto* end = std::get_if<WorkEnded>(&event)) {
      stop.OnEnd(*end);
    }
  }
}

namespace {

/// Returns whether a worker may end by itself: the run is over, or the worker is no longer a
/// member, or its place may be kept for another.
bool IsExcused(const Scenario& scenario, const WorkerEnded& ended, const View& view, Phase phase) {
  if (ended.status.ok()) return true;
  if (absl::IsOutOfRange(ended.status)) return phase == Phase::kFinished;
  const Member* member = view.Find(ended.worker.worker);
  const bool is_member = member != nullptr && member->incarnation == ended.worker.incarnation;
  return absl::IsFailedPrecondition(ended.status) && (!is_member || scenario.waits_for_lost());
}

}  // namespace

void CheckEnd(const Scenario& scenario, const History& history, const Evidence& evidence,
              Findings& findings) {
  if (!history.is_finished) findings.Add("the run does not come to its end: {}", history.stuck);
  for (const std::string& rule : history.broken_rules) findings.Add("{}", rule);
  View view;
  Phase phase = Phase::kWaitingForServers;
  for (const Event& event : history.events) {
    if (const auto* made = std::get_if<ViewMade>(&event)) view = made->view;
    if (const auto* made = std::get_if<PhaseMade>(&event)) phase = made->phase;
    const auto* ended = std::get_if<WorkerEnded>(&event);
    if (ended == nullptr || IsExcused(scenario, *ended, view, phase)) continue;
    findings.Add("worker {}#{} gave up: {}", Value(ended->worker.worker),
                 Value(ended->worker.incarnation), ended->status.ToString());
  }
  if (!history.is_finished) return;
  for (size_t i = 0; i < history.ends.size(); ++i) {
    const ShardEnd& end = history.ends[i];
    if (end.calls_waiting + end.payloads_held + end.bytes_queued > 0) {
      findings.Add("shard {}: left behind {} calls, {} payloads, {} bytes", i, end.calls_waiting,
                   end.payloads_held, end.bytes_queued);
    }
    if (!end.has_weights) continue;
    if (evidence.weights[i].rbegin()->first != end.published) {
      findings.Add("shard {}: another last version", i);
    }
  }
}

std::vector<std::string> CheckAll(const Scenario& scenario, const History& history) {
  const Evidence evidence(history, scenario.shows_gradients());
  Findings findings;
  CheckEnd(scenario, history, evidence, findings);
  CheckVersions(scenario, history, evidence, findings);
  CheckSynced(scenario, history, findings);
  CheckMembers(scenario, history, findings);
  CheckRounds(scenario, history, evidence, findings);
  CheckPace(scenario, history, findings);
  CheckFreeLanes(history, findings);
  if (!history.is_finished) return findings.lines();
  CheckPushes(evidence, findings);
  CheckPulls(history, findings);
  CheckAggregators(scenario, history, findings);
  CheckStaleness(scenario, history, evidence, findings);
  CheckNumbers(scenario, history, evidence, findings);
  CheckCodec(scenario, history, evidence, findings);
  CheckWork(scenario, evidence, findings);
  CheckStop(scenario, history, findings);
  return findings.lines();
}

}  // namespace slipstream
