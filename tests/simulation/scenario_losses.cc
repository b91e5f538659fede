#include "tests/simulation/scenario_losses.h"

#include <algorithm>

#include "tests/simulation/chance.h"

namespace slipstream {
namespace {

// The stream of the seed.
constexpr uint64_t kLossStream = 26;

}  // namespace

void DrawWorkerLoss(Scenario& scenario) {
  Chance chance(scenario.seed, kLossStream);
  ClusterSpec& cluster = scenario.run.cluster;
  const bool waits = std::ranges::any_of(scenario.run.stages(), [](const PolicyStage& stage) {
    return stage.consistency.traits().waits_for_members;
  });
  if (!waits || cluster.tree.fanout > 0 || !chance.Happens(400)) return;
  cluster.on_worker_loss = ClusterSpec::OnWorkerLoss::kWait;
}

}  // namespace slipstream
