#include "tests/simulation/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/chance.h"
#include "tests/simulation/scenario_losses.h"
#include "tests/simulation/scenario_restarts.h"
#include "tests/simulation/scenario_stages.h"

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

constexpr uint32_t kBatchesMax = 64;

// Streams of the seed. Later additions have their own streams, so that old seeds keep their draws.
constexpr uint64_t kMainStream = 0;
constexpr uint64_t kStopStream = 2;
constexpr uint64_t kPipelineStream = 3;
constexpr uint64_t kPolicyStream = 4;
constexpr uint64_t kCompensationStream = 5;
constexpr uint64_t kCodecStream = 6;
constexpr uint64_t kAlgorithmStream = 7;
constexpr uint64_t kFixedRoundStream = 8;
constexpr uint64_t kElasticStream = 9;
constexpr uint64_t kGapStream = 10;
constexpr uint64_t kFetchStream = 12;
constexpr uint64_t kSpeedStream = 13;
constexpr uint64_t kFragmentStream = 14;
constexpr uint64_t kRuleStream = 15;
constexpr uint64_t kWeighingStream = 16;
constexpr uint64_t kTensorStream = 17;
constexpr uint64_t kAdaptiveStream = 18;
constexpr uint64_t kReaderStream = 19;
constexpr uint64_t kInPlaceStream = 20;
constexpr uint64_t kFreeLanesStream = 22;
constexpr uint64_t kTreeStream = 23;

void DrawConsistency(Chance& chance, RunSpec& run) {
  constexpr Policy kPolicies[] = {Policy::kHardsync, Policy::kSoftsync, Policy::kAsync};
  run.consistency.policy = kPolicies[chance.Between(0, 2)];
  if (run.consistency.policy == Policy::kSoftsync) {
    run.consistency.parameters["n"] = chance.Between(1, run.cluster.workers);
  }
  if (!chance.Happens(400)) return;
  using Action = StalenessGuardSpec::Action;
  constexpr Action kActions[] = {Action::kReject, Action::kBlock, Action::kScale, Action::kDrop};
  StalenessGuardSpec& guard = run.consistency.max_staleness;
  guard.action = kActions[chance.Between(0, 3)];
  guard.bound = chance.Between(guard.action == Action::kScale ? 1 : 0, 6);
}

/// Draws one of the policies that were added after the first three.
void DrawNewerPolicy(Scenario& scenario) {
  Chance chance(scenario.seed, kPolicyStream);
  ConsistencySpec& consistency = scenario.run.consistency;
  if (!chance.Happens(400)) return;
  consistency.parameters["slack"] = chance.Between(0, 4);
  const uint32_t workers = scenario.run.cluster.workers;
  consistency.policy = workers > 1 && chance.Happens(500) ? Policy::kBackup : Policy::kSsp;
  if (workers > 1) consistency.parameters["backups"] = chance.Between(0, workers / 2);
  // The policy and the guard would each wait for what the other holds back.
  if (scenario.blocks()) consistency.max_staleness = {};
}

/// Draws a softsync whose rounds have a fixed size, which may be more than one gradient of each
/// worker.
void DrawFixedRound(Scenario& scenario) {
  Chance chance(scenario.seed, kFixedRoundStream);
  ConsistencySpec& consistency = scenario.run.consistency;
  if (consistency.policy != Policy::kSoftsync || !chance.Happens(300)) return;
  consistency.parameters["n"] = 1;
  consistency.parameters["c"] = chance.Between(1, 2 * scenario.run.cluster.workers);
}

void DrawTraining(Chance& chance, Scenario& scenario) {
  RunSpec& run = scenario.run;
  run.training.batch_size = chance.Between(1, 8);
  run.training.epochs = chance.Between(1, 4);
  const uint32_t batches = chance.Between(1, kBatchesMax / run.training.epochs);
  // The last mini-batch of an epoch may be smaller.
  scenario.examples_per_epoch =
      batches * run.training.batch_size - chance.Between(0, run.training.batch_size - 1);
  constexpr OptimizerSpec::StalenessScaling kScalings[] = {
      OptimizerSpec::StalenessScaling::kNone, OptimizerSpec::StalenessScaling::kPerGradient,
      OptimizerSpec::StalenessScaling::kMean};
  run.optimizer.kind = OptimizerSpec::Kind::kSgd;
  run.optimizer.learning_rate = 0.5;
  run.optimizer.staleness_scaling = kScalings[chance.Between(0, 2)];
  run.evaluation.every_epochs = chance.Between(0, 2);
}

/// Draws one of the compensations that were added after the first three.
void DrawNewerCompensation(Scenario& scenario) {
  Chance chance(scenario.seed, kCompensationStream);
  OptimizerSpec& optimizer = scenario.run.optimizer;
  if (!chance.Happens(250)) return;
  optimizer.staleness_scaling = StalenessScaling::kDelayCompensated;
  optimizer.scaling_parameters["delay_compensation"] = chance.Between(1, 100) / 100.0;
  if (Chance(scenario.seed, kGapStream).Happens(400)) {
    optimizer.staleness_scaling = StalenessScaling::kGapAware;
  }
}

/// Draws other factors for stale gradients, and other rates.
void DrawWeighing(Scenario& scenario) {
  Chance chance(scenario.seed, kWeighingStream);
  OptimizerSpec& optimizer = scenario.run.optimizer;
  constexpr StalenessScaling kScalings[] = {
      StalenessScaling::kPolynomial, StalenessScaling::kInverseSqrt, StalenessScaling::kRudra};
  const bool may_draw = !RowOf(optimizer.staleness_scaling).uses_base_weights;
  if (may_draw && chance.Happens(250))
    optimizer.staleness_scaling = kScalings[chance.Between(0, 2)];
}

/// Draws the compensation whose factor follows the gradients' size, where each update has one
/// gradient: with more, it depends on their order, which the checkers do not know.
void DrawAdaptiveCompensation(Scenario& scenario) {
  Chance chance(scenario.seed, kAdaptiveStream);
  RunSpec& run = scenario.run;
  const Policy policy = run.consistency.policy;
  const bool has_single_gradients = run.policies_before.empty() && !scenario.blocks() &&
                                    (policy == Policy::kAsync || policy == Policy::kSsp);
  const bool is_compensated =
      run.optimizer.staleness_scaling == StalenessScaling::kDelayCompensated;
  if (!has_single_gradients || !is_compensated || !chance.Happens(500)) return;
  run.optimizer.staleness_scaling = StalenessScaling::kDelayAdaptive;
}

/// Draws the servers' rule.
void DrawRule(Scenario& scenario) {
  Chance chance(scenario.seed, kRuleStream);
  RunSpec& run = scenario.run;
  const AlgorithmRow& algorithm = RowOf(run.worker.algorithm);
  if (algorithm.keeps_weights || !chance.Happens(350)) return;
  const RuleKind kind = kRuleRows[chance.Between(1, kRuleRows.size() - 1)].kind;  // Not sgd.
  if (RowOf(kind).takes_values) return;
  if (algorithm.has_local_weights) {
    run.worker.outer.kind = kind;
    run.worker.outer.learning_rate = 0.05;
  } else {
    run.optimizer.kind = kind;
    run.optimizer.learning_rate = 0.05;
  }
}

/// Draws another learning rate for the weights of the first shard, where workers have no rate.
void DrawTensorOptions(Scenario& scenario) {
  Chance chance(scenario.seed, kTensorStream);
  RunSpec& run = scenario.run;
  if (RowOf(run.worker.algorithm).has_local_weights || !chance.Happens(100)) return;
  run.optimizer.per_tensor = {{.match = "of-shard-0", .learning_rate_factor = 0.25}};
}

void DrawCodec(Scenario& scenario) {
  Chance chance(scenario.seed, kCodecStream);
  constexpr Encoding kCodecs[] = {Encoding::kInt8, Encoding::kOneBit, Encoding::kTwoBit,
                                  Encoding::kTopK};
  if (chance.Happens(250)) scenario.run.wire.push_codec = kCodecs[chance.Between(0, 3)];
}

/// Draws workers with local steps. They have one gradient in flight, which is not one of pulled
/// weights.
void DrawAlgorithm(Scenario& scenario) {
  Chance chance(scenario.seed, kAlgorithmStream);
  RunSpec& run = scenario.run;
  if (!chance.Happens(250)) return;
  run.worker.algorithm = AlgorithmKind::kLocalSgd;
  run.worker.parameters["steps"] = chance.Between(1, 5);
  run.optimizer.learning_rate = 0.05;  // Keeps the values of a delta below 1.
  run.training.pipeline_depth = 1;
  if (RowOf(run.optimizer.staleness_scaling).uses_base_weights) {
    run.optimizer.staleness_scaling = StalenessScaling::kNone;
  }
}

/// Draws workers that keep weights of their own, among those with local steps.
void DrawElastic(Scenario& scenario) {
  Chance chance(scenario.seed, kElasticStream);
  WorkerSpec& worker = scenario.run.worker;
  if (worker.algorithm != AlgorithmKind::kLocalSgd || !chance.Happens(400)) return;
  worker.algorithm = AlgorithmKind::kEasgd;
  worker.parameters["push_every"] = worker.parameters["steps"];
  worker.parameters["elasticity"] = 0.3;
}

/// Draws workers that fetch weights less often than they push, among those with local steps.
void DrawSeldomFetching(Scenario& scenario) {
  Chance chance(scenario.seed, kFetchStream);
  RunSpec& run = scenario.run;
  const bool may_draw = run.worker.algorithm == AlgorithmKind::kLocalSgd &&
                        !run.consistency.traits().waits_for_members;
  if (!may_draw || !chance.Happens(400)) return;
  run.worker.algorithm = AlgorithmKind::kDownpour;
  run.worker.parameters["push_every"] = 1;  // Keeps the values of a sum below 1.
  run.worker.parameters["fetch_every"] = chance.Between(2, 4);
}

/// Draws readers that workers wait for.
void DrawReaders(Scenario& scenario) {
  Chance chance(scenario.seed, kReaderStream);
  if (!chance.Happens(200)) return;
  scenario.run.readers.on_lag = ReadersSpec::OnLag::kWait;
  for (uint32_t left = chance.Between(1, 3); left > 0; --left) {
    ReaderPlan& reader = scenario.readers.emplace_back();
    reader.comes = chance.Time(absl::ZeroDuration(), absl::Seconds(3));
    reader.lag_max = chance.Between(1, 4);
    reader.pause_max = chance.Time(absl::ZeroDuration(), absl::Milliseconds(50));
    if (chance.Happens(300)) reader.dies = chance.Time(absl::ZeroDuration(), absl::Seconds(5));
  }
}

/// Draws workers that exchange the model in fragments, among those with local steps.
void DrawFragments(Scenario& scenario) {
  Chance chance(scenario.seed, kFragmentStream);
  WorkerSpec& worker = scenario.run.worker;
  const bool may_draw = worker.algorithm == AlgorithmKind::kLocalSgd && scenario.shards > 1;
  if (!may_draw || !chance.Happens(500)) return;
  worker.algorithm = AlgorithmKind::kDiloco;
  worker.parameters["fragments"] = scenario.shards;
  worker.parameters["steps"] = chance.Between(scenario.shards, 6);
  if (worker.quantum() >= 2 * scenario.shards) {
    worker.parameters["fragment_delay"] = chance.Between(0, 1);
  }
  scenario.has_nonfinite_steps = chance.Happens(300);
}

/// Draws workers that take local steps by their speed, among those whose work comes in units.
void DrawStepsBySpeed(Scenario& scenario) {
  Chance chance(scenario.seed, kSpeedStream);
  RunSpec& run = scenario.run;
  if (!RowOf(run.worker.algorithm).has_local_weights || scenario.stages_in_rounds() > 0) return;
  run.worker.steps_by_speed = chance.Happens(400);
}

void DrawTimes(Chance& chance, Scenario& scenario) {
  const absl::Duration usual = chance.Time(absl::Milliseconds(1), absl::Milliseconds(40));
  for (uint32_t worker = 0; worker < scenario.run.cluster.workers; ++worker) {
    const bool is_slow = chance.Happens(150);
    const absl::Duration time = chance.Time(usual / 2, usual * 2);
    scenario.compute_time.push_back(is_slow ? time * 8 : time);
  }
  scenario.delay_max =
      absl::Microseconds(100) * (chance.Happens(300) ? 300 : chance.Between(1, 50));
  scenario.update_time_max =
      chance.Happens(200) ? absl::Milliseconds(100) : absl::Microseconds(chance.Between(1, 5000));
}

/// Returns about how long training takes without faults.
absl::Duration Estimate(const Scenario& scenario) {
  const absl::Duration slowest = *std::ranges::max_element(scenario.compute_time);
  const absl::Duration step = slowest + 4 * scenario.delay_max + scenario.update_time_max;
  return step * scenario.batches_total() / scenario.run.cluster.workers + absl::Milliseconds(500);
}

WorkerFault DrawWorkerFault(Chance& chance, const Scenario& scenario) {
  WorkerFault fault;
  fault.worker = chance.Between(0, scenario.run.cluster.workers - 1);
  fault.at = chance.Time(absl::ZeroDuration(), Estimate(scenario));
  fault.returns = chance.Happens(700);
  const absl::Duration lease = scenario.run.cluster.lease;
  const uint32_t kind = chance.Between(0, 9);
  if (kind < 5) {
    fault.kind = WorkerFault::Kind::kCrash;
    fault.lasting = chance.Time(absl::ZeroDuration(), lease * 2);
  } else if (kind < 8) {
    fault.kind = WorkerFault::Kind::kFreeze;
    fault.lasting = chance.Happens(700) ? chance.Time(lease, lease * 3)
                                        : chance.Time(absl::ZeroDuration(), lease);
  } else {
    fault.kind = WorkerFault::Kind::kReplace;
  }
  return fault;
}

void DrawFaults(Chance& chance, Scenario& scenario) {
  Faults& faults = scenario.faults;
  const absl::Duration estimate = Estimate(scenario);
  faults.end = estimate + chance.Time(absl::ZeroDuration(), absl::Seconds(4));
  if (chance.Happens(600)) faults.loss_per_mille = chance.Between(1, 120);
  if (chance.Happens(600)) faults.duplicate_per_mille = chance.Between(1, 200);
  faults.late_max = chance.Happens(500) ? absl::Seconds(5) : absl::Milliseconds(50);
  faults.failure_max = absl::Milliseconds(chance.Happens(500) ? 60 : 1500);
  faults.cancel_max = absl::Milliseconds(chance.Happens(500) ? 60 : 3000);
  if (chance.Happens(500)) {
    for (uint32_t left = chance.Between(1, 4); left > 0; --left) {
      faults.workers.push_back(DrawWorkerFault(chance, scenario));
    }
  }
  if (chance.Happens(250)) {
    const uint32_t count = chance.Between(1, 2);
    for (uint32_t i = 0; i < count; ++i) {
      scenario.joins.push_back(chance.Time(absl::ZeroDuration(), estimate));
    }
  }
}

/// Draws a condition that ends the run before its epochs are over.
void DrawStop(Scenario& scenario) {
  Chance chance(scenario.seed, kStopStream);
  if (!chance.Happens(200)) return;
  TrainingSpec& training = scenario.run.training;
  const uint32_t steps = scenario.batches_total();
  switch (chance.Between(0, 2)) {
    case 0:
      training.max_steps = chance.Between(1, steps + 1);
      break;
    case 1:
      training.max_seconds =
          absl::ToDoubleSeconds(chance.Time(absl::Milliseconds(1), Estimate(scenario) / 2));
      break;
    default:
      training.target_accuracy = chance.Between(1, 50) / 100.0;
      scenario.run.evaluation.every_epochs = 1;
  }
}

/// Draws the pipeline's depth. With rounds there is nothing to compute while a push is in flight.
void DrawPipeline(Scenario& scenario) {
  Chance chance(scenario.seed, kPipelineStream);
  if (scenario.stages_in_rounds() > 0 || !chance.Happens(300)) return;
  scenario.run.training.pipeline_depth = 2;
}

/// Corrects settings that a run.yaml may not have either, under which rounds would not close.
void LetRoundsClose(RunSpec& run) {
  StalenessGuardSpec& guard = run.consistency.max_staleness;
  if (guard.action != StalenessGuardSpec::Action::kBlock || guard.bound > 0) return;
  if (run.cluster.servers.size() > 1 || run.training.pipeline_depth > 1) guard.bound = 1;
}

/// Draws additions in place, of gradients that all count in full: then the last weights show that
/// each was added once.
void DrawInPlace(Scenario& scenario) {
  Chance chance(scenario.seed, kInPlaceStream);
  RunSpec& run = scenario.run;
  const bool fits = run.consistency.policy == Policy::kAsync && run.policies_before.empty() &&
                    run.server_optimizer().kind == RuleKind::kSgd &&
                    run.optimizer.per_tensor.empty() && run.wire.push_codec == Encoding::kFp32;
  if (!fits || !chance.Happens(500)) return;
  run.consistency.policy = Policy::kHogwild;
  run.optimizer.staleness_scaling = StalenessScaling::kNone;
  using Action = StalenessGuardSpec::Action;
  StalenessGuardSpec& guard = run.consistency.max_staleness;
  if (guard.action == Action::kScale || guard.action == Action::kBlock) guard = {};
}

/// Draws workers that take the newest weights beside their pushes, where no worker waits for others
/// and no base weights are kept.
void DrawFreeLanes(Scenario& scenario) {
  Chance chance(scenario.seed, kFreeLanesStream);
  RunSpec& run = scenario.run;
  const std::vector<PolicyStage> stages = run.stages();
  const bool waits = std::ranges::any_of(stages, [](const PolicyStage& stage) {
    return stage.consistency.traits().waits_for_members;
  });
  const bool fits = run.worker.algorithm == AlgorithmKind::kGradient && !waits &&
                    !RowOf(run.optimizer.staleness_scaling).uses_base_weights &&
                    run.readers.on_lag == ReadersSpec::OnLag::kReport;
  if (!fits || !chance.Happens(350)) return;
  run.worker.lanes = WorkerSpec::Lanes::kFree;
  run.training.pipeline_depth = 2;
}

/// Draws aggregators, and which of them end.
void DrawTree(Scenario& scenario) {
  Chance chance(scenario.seed, kTreeStream);
  ClusterSpec& cluster = scenario.run.cluster;
  if (!scenario.may_combine() || !chance.Happens(400)) return;
  cluster.tree.fanout = chance.Between(2, 4);
  if (!chance.Happens(500)) return;
  for (uint32_t left = chance.Between(1, 3); left > 0; --left) {
    AggregatorFault& fault = scenario.faults.aggregators.emplace_back();
    fault.group = chance.Between(0, cluster.groups() - 1);
    fault.shard = chance.Between(0, scenario.shards - 1);
    fault.at = chance.Time(absl::ZeroDuration(), Estimate(scenario));
    fault.returns = chance.Happens(600);
    fault.lasting = chance.Time(absl::ZeroDuration(), absl::Seconds(3));
  }
}

}  // namespace

Scenario DrawScenario(uint64_t seed) {
  Chance chance(seed, kMainStream);
  Scenario scenario;
  scenario.seed = seed;
  scenario.shards = chance.Between(1, 3);
  RunSpec& run = scenario.run;
  run.name = fmt::format("simulated-{}", seed);
  run.seed = seed;
  run.cluster.workers = chance.Between(1, 8);
  run.cluster.servers.clear();
  for (uint32_t shard = 0; shard < scenario.shards; ++shard) {
    run.cluster.servers.push_back(fmt::format("shard-{}:7070", shard));
  }
  run.cluster.lease = chance.Time(absl::Milliseconds(500), absl::Seconds(2));
  run.cluster.start_timeout = absl::Minutes(10);
  DrawConsistency(chance, run);
  DrawNewerPolicy(scenario);
  DrawFixedRound(scenario);
  DrawTraining(chance, scenario);
  DrawNewerCompensation(scenario);
  DrawWeighing(scenario);
  DrawCodec(scenario);
  DrawTimes(chance, scenario);
  // There is room for one or two pushes only, so many pushes are told to retry later.
  if (chance.Happens(150)) run.wire.push_bytes_max = 2048;
  DrawFaults(chance, scenario);
  DrawStop(scenario);
  DrawPipeline(scenario);
  DrawAlgorithm(scenario);
  DrawElastic(scenario);
  DrawSeldomFetching(scenario);
  DrawFragments(scenario);
  DrawStages(scenario);
  DrawStepsBySpeed(scenario);
  DrawAdaptiveCompensation(scenario);
  DrawRule(scenario);
  DrawTensorOptions(scenario);
  DrawReaders(scenario);
  DrawInPlace(scenario);
  DrawFreeLanes(scenario);
  LetRoundsClose(scenario.run);
  DrawChanges(scenario, Estimate(scenario));
  DrawTree(scenario);
  DrawWorkerLoss(scenario);
  DrawRestarts(scenario);
  return scenario;
}

Scenario WithoutFaults(Scenario scenario) {
  scenario.faults = Faults();
  scenario.joins.clear();
  return scenario;
}

}  // namespace slipstream
