#include <algorithm>
#include <map>
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
/// that blocks refuses nothing that it knew to be in flight.
bool MayLack(const Scenario& scenario, const Evidence& evidence, size_t shard) {
  using Action = StalenessGuardSpec::Action;
  if (scenario.has_rounds()) return shard > 0 && !evidence.died.empty();
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
  // If rounds may close without some members, each shard does so on its own. The first shard
  // determines which mini-batches are done.
  const size_t checked = scenario.spare() > 0 ? 1 : shards.size();
  for (size_t shard = 0; shard < checked; ++shard) {
    Doers& done = shards[shard];
    for (uint64_t batch = 0; batch < scenario.batches_total(); ++batch) {
      const std::vector<Incarnation> by =
          done.contains(batch) ? done[batch] : std::vector<Incarnation>();
      // In the round in which work ended, a push that came late to the first shard is not named
      // again.
      const bool ends_with_late = evidence.ended_early && scenario.spare() > 0;
      const bool is_excused = ends_with_late || MayLack(scenario, evidence, shard) ||
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

}  // namespace slipstream
