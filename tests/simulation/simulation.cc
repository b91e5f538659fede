#include "tests/simulation/simulation.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdio>
#include <ostream>

#include "tests/simulation/checkers.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/evidence.h"
#include "tests/simulation/scenario.h"

namespace slipstream {
namespace {

/// Every seed that is a multiple of this runs a second time, without restoring machines.
constexpr uint64_t kRepeatedEvery = 20;

std::string RepeatLine(uint64_t seed) {
  return fmt::format("bazel run //tests/simulation:simulate -- --seed {}", seed);
}

// The command that repeats the current run. A signal handler prints it if a failed check aborts.
std::string repeat_line;

void OnAbort(int) {
  std::fprintf(stderr, "The process died in a simulated run. Repeat it by:\n  %s\n",
               repeat_line.c_str());
}

bool NobodyDied(const Scenario& scenario, const History& history) {
  return Evidence(history, scenario.shows_gradients()).died.empty();
}

/// Returns whether mini-batches may be done again. Where shards keep logs, nothing is lost.
bool RepeatsWork(const Scenario& scenario) {
  return !scenario.faults.servers.empty() && !scenario.run.durability.keeps_log();
}

/// Returns whether mini-batches may be done again with the same result: what workers remember of
/// the encoding of lost gradients would be in the next ones, and a rule that measures whole tensors
/// adds up the counting positions in another order.
bool MayRepeatWork(const Scenario& scenario) {
  return scenario.run.wire.push_codec == Encoding::kFp32 &&
         !RowOf(scenario.run.server_optimizer().kind).measures_tensors;
}

/// Returns whether every round had a gradient of each place, though workers have died: others took
/// their places before the end of training, and did again what some shards may have lacked. A
/// server that comes back may not have the weights for that, and one that compensates by base
/// weights has them repeat nothing.
bool KeptAllPlaces(const Scenario& scenario, const History& history) {
  const bool has_bases = RowOf(scenario.run.optimizer.staleness_scaling).uses_base_weights;
  const bool keeps_places = scenario.waits_for_lost() && scenario.faults.servers.empty() &&
                            !has_bases &&
                            scenario.run.worker.algorithm == AlgorithmKind::kGradient &&
                            MayRepeatWork(scenario) && history.is_finished;
  return keeps_places && std::ranges::all_of(history.events, [&](const Event& event) {
           const auto* orders = std::get_if<OrdersTaken>(&event);
           if (orders == nullptr) return true;
           const bool makes_versions =
               orders->phase == Phase::kTraining || orders->phase == Phase::kDraining;
           return !makes_versions || orders->view.members.size() == scenario.run.cluster.workers;
         });
}

void CompareWithQuietRun(const Scenario& scenario, const History& history, Simulated& simulated) {
  // In these runs, the bits do not depend on timing. With aggregators, they depend on which pushes
  // were combined, and so on faults.
  const std::vector<PolicyStage> stages = scenario.run.stages();
  const bool is_repeatable = std::ranges::all_of(stages, [](const PolicyStage& stage) {
    return stage.consistency.traits().order == PolicyTraits::Order::kRank;
  });
  const bool has_tree = scenario.run.cluster.tree.fanout > 0;
  const bool applies = is_repeatable && !has_tree && scenario.joins.empty() &&
                       !scenario.may_end_early() && simulated.findings.empty() &&
                       (!RepeatsWork(scenario) || MayRepeatWork(scenario)) &&
                       (NobodyDied(scenario, history) || KeptAllPlaces(scenario, history));
  if (!applies) return;
  const Scenario quiet = WithoutFaults(scenario);
  SimCluster cluster(quiet, {.luck = 1});
  cluster.Run();
  simulated.findings = CheckEqual(history, cluster.history());
}

void Repeat(const Scenario& scenario, Simulated& simulated) {
  SimCluster again(scenario, {.restores = false});
  again.Run();
  if (again.digest() == simulated.digest && again.steps() == simulated.steps) return;
  simulated.findings.push_back(
      "the same seed, without a machine that is restored, gave another trace");
}

}  // namespace

Simulated Simulate(uint64_t seed, std::ostream* trace) {
  repeat_line = RepeatLine(seed);
  // The lines of all processes would come together, and none says which one it is from.
  spdlog::set_level(spdlog::level::off);
  const auto before = std::signal(SIGABRT, OnAbort);
  const Scenario scenario = DrawScenario(seed);
  if (trace != nullptr) *trace << Describe(scenario) << '\n';
  SimCluster cluster(scenario, {.trace = trace});
  cluster.Run();
  Simulated simulated = {.seed = seed,
                         .findings = CheckAll(scenario, cluster.history()),
                         .digest = cluster.digest(),
                         .steps = cluster.steps(),
                         .time = cluster.time()};
  CompareWithQuietRun(scenario, cluster.history(), simulated);
  if (seed % kRepeatedEvery == 0) Repeat(scenario, simulated);
  std::signal(SIGABRT, before);
  return simulated;
}

std::string Report(const Simulated& simulated) {
  std::string text = Describe(DrawScenario(simulated.seed)) + "\n";
  for (const std::string& finding : simulated.findings) text += "  " + finding + "\n";
  return text + "repeat: " + RepeatLine(simulated.seed) + "\n";
}

}  // namespace slipstream
