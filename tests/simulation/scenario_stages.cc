#include "tests/simulation/scenario_stages.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simulation/chance.h"

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

// Streams of the seed.
constexpr uint64_t kStageStream = 11;
constexpr uint64_t kChangeStream = 21;

/// Returns the policy as servers hear of it: the parameters of other policies have their defaults.
ConsistencySpec WithOwnParameters(ConsistencySpec policy) {
  const PolicyParameters drawn = std::exchange(policy.parameters, {});
  for (const std::string_view key : RowOf(policy.policy).parameters) {
    if (!key.empty()) policy.parameters[key] = drawn[key];
  }
  return policy;
}

ConsistencySpec DrawEarlierPolicy(Chance& chance, const Scenario& scenario, bool has_rounds) {
  const uint32_t workers = scenario.run.cluster.workers;
  ConsistencySpec policy;
  policy.parameters["backups"] = chance.Between(0, workers / 2);
  policy.parameters["n"] = chance.Between(1, workers);
  policy.parameters["slack"] = chance.Between(0, 4);
  if (has_rounds) {
    policy.policy = workers > 1 && chance.Happens(500) ? Policy::kBackup : Policy::kHardsync;
  } else if (!scenario.blocks() && scenario.run.worker.pushes_per_fetch() == 1 &&
             !scenario.run.worker.has_free_lanes() && chance.Happens(300)) {
    policy.policy = Policy::kSsp;
  } else {
    policy.policy = chance.Happens(500) ? Policy::kSoftsync : Policy::kAsync;
  }
  return WithOwnParameters(policy);
}

}  // namespace

void DrawStages(Scenario& scenario) {
  Chance chance(scenario.seed, kStageStream);
  RunSpec& run = scenario.run;
  if (run.training.epochs < 2 || !chance.Happens(250)) return;
  const uint32_t count = chance.Between(1, std::min(run.training.epochs - 1, 2u));
  const bool all_have_rounds = scenario.HasRounds(0);
  // A worker that fetches seldom needs policies that wait for nobody.
  const bool fetches_seldom = run.worker.pushes_per_fetch() > 1;
  const bool may_have_rounds = run.training.pipeline_depth == 1 && !fetches_seldom;
  bool has_rounds = all_have_rounds || (may_have_rounds && chance.Happens(600));
  for (uint32_t i = 0; i < count; ++i) {
    run.policies_before.push_back({DrawEarlierPolicy(chance, scenario, has_rounds), i + 1});
    has_rounds = all_have_rounds || (has_rounds && chance.Happens(500));
  }
}

void DrawChanges(Scenario& scenario, absl::Duration longest) {
  Chance chance(scenario.seed, kChangeStream);
  const RunSpec& run = scenario.run;
  if (run.optimizer.staleness_scaling == StalenessScaling::kDelayAdaptive) return;
  if (run.consistency.traits().adds_in_place()) return;
  if (!run.policies_before.empty() || scenario.HasRounds(0) || !chance.Happens(300)) return;
  const uint32_t count = chance.Between(1, 4);
  for (uint32_t i = 0; i < count; ++i) {
    PolicyChange change = {.at = chance.Time(absl::ZeroDuration(), longest),
                           .policy = DrawEarlierPolicy(chance, scenario, /*has_rounds=*/false)};
    change.policy.max_staleness = scenario.guard();
    // A change to the policy in force would make no stage.
    const auto stage = static_cast<uint32_t>(scenario.changes.size());
    if (change.policy != WithOwnParameters(scenario.PolicyOf(stage))) {
      scenario.changes.push_back(change);
    }
  }
  std::vector<absl::Duration> times;
  for (const PolicyChange& change : scenario.changes) times.push_back(change.at);
  std::ranges::sort(times);
  for (size_t i = 0; i < times.size(); ++i) scenario.changes[i].at = times[i];
}

}  // namespace slipstream
