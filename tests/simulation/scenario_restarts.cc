#include "tests/simulation/scenario_restarts.h"

#include <algorithm>
#include <iterator>

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
  if (chance.Happens(500)) fault.kind = ServerFault::Kind::kPowerCut;
  fault.calls = chance.Between(0, 40);
  fault.seed = chance.Between(0, 1'000'000);
  return fault;
}

/// Draws what else can happen to a server whose shard keeps a log.
void DrawLogFault(Chance& chance, ServerFault& fault) {
  using Moment = ServerFault::Moment;
  constexpr Moment kMoments[] = {Moment::kAny, Moment::kLogging, Moment::kSaving,
                                 Moment::kNewSegment};
  fault.moment = kMoments[chance.Between(0, std::size(kMoments) - 1)];
  // Most batches take a few calls.
  if (chance.Happens(600)) fault.calls = chance.Between(0, 4);
  if (chance.Happens(250)) fault.redos = chance.Between(1, 2);
  fault.hits_all = chance.Happens(150);
  if (chance.Happens(150)) fault.kind = ServerFault::Kind::kDiskCall;
  if (chance.Happens(100)) fault.kind = ServerFault::Kind::kDiskFull;
}

void DrawLogs(Chance& chance, Scenario& scenario) {
  scenario.run.durability.level = DurabilitySpec::Level::kSynced;
  scenario.log_time_max = chance.Time(absl::Microseconds(50), absl::Milliseconds(10));
  scenario.redo_time_max = chance.Time(absl::Milliseconds(1), absl::Milliseconds(500));
  std::vector<ServerFault>& faults = scenario.faults.servers;
  for (ServerFault& fault : faults) DrawLogFault(chance, fault);
  // If two checkpoints were damaged, one could be the last.
  const auto ends = std::ranges::find(faults, ServerFault::Kind::kKill, &ServerFault::kind);
  if (ends != faults.end()) ends->damages = chance.Happens(300);
}

}  // namespace

void DrawRestarts(Scenario& scenario) {
  Chance chance(scenario.seed, kRestartStream);
  RunSpec& run = scenario.run;
  const std::vector<PolicyStage> stages = run.stages();
  const bool can_save = std::ranges::none_of(stages, [](const PolicyStage& stage) {
    const PolicyTraits traits = stage.consistency.traits();
    return traits.adds_in_place() || traits.workers_make_weights();
  });
  if (!can_save || !chance.Happens(700)) return;
  run.durability.level = DurabilitySpec::Level::kCheckpoint;
  run.durability.directory = "/simulated";
  run.durability.interval = chance.Time(absl::Milliseconds(100), absl::Seconds(1));
  scenario.save_time_max = chance.Time(absl::Milliseconds(1), absl::Milliseconds(500));
  scenario.journal_time_max = chance.Time(absl::Microseconds(100), absl::Milliseconds(20));
  for (uint32_t left = chance.Between(1, 4); left > 0; --left) {
    scenario.faults.servers.push_back(DrawServerFault(chance, scenario));
  }
  if (chance.Happens(500)) DrawLogs(chance, scenario);
}

}  // namespace slipstream
