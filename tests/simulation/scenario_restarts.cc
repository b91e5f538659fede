#include "tests/simulation/scenario_restarts.h"

#include <algorithm>

#include "tests/simulation/chance.h"

namespace slipstream {
namespace {

// The stream of the seed.
constexpr uint64_t kRestartStream = 24;

ServerFault DrawServerFault(Chance& chance, const Scenario& scenario) {
  ServerFault fault;
  fault.shard = chance.Between(0, scenario.shards - 1);
  fault.at = chance.Time(absl::ZeroDuration(), scenario.faults.end);
  fault.lasting = chance.Time(absl::Milliseconds(1), absl::Seconds(3));
  // Only a small part of the time is spent on writing, and most mistakes would show there.
  if (chance.Happens(400)) fault.moment = ServerFault::Moment::kWriting;
  return fault;
}

}  // namespace

void DrawRestarts(Scenario& scenario) {
  Chance chance(scenario.seed, kRestartStream);
  RunSpec& run = scenario.run;
  const std::vector<PolicyStage> stages = run.stages();
  const bool can_save =
      run.cluster.tree.fanout == 0 && std::ranges::none_of(stages, [](const PolicyStage& stage) {
        const PolicyTraits traits = stage.consistency.traits();
        return traits.in_place || traits.all_reduce;
      });
  if (!can_save || !chance.Happens(400)) return;
  run.durability.level = DurabilitySpec::Level::kCheckpoint;
  run.durability.directory = "simulated";
  run.durability.interval = chance.Time(absl::Milliseconds(100), absl::Seconds(1));
  scenario.save_time_max = chance.Time(absl::Milliseconds(1), absl::Milliseconds(500));
  scenario.journal_time_max = chance.Time(absl::Microseconds(100), absl::Milliseconds(20));
  for (uint32_t left = chance.Between(1, 4); left > 0; --left) {
    scenario.faults.servers.push_back(DrawServerFault(chance, scenario));
  }
}

}  // namespace slipstream
