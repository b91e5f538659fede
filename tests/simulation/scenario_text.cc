// The line that describes a scenario.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tests/simulation/scenario.h"

namespace slipstream {
namespace {

std::string Describe(const WorkerFault& fault) {
  constexpr std::string_view kNames[] = {"crash", "freeze", "replace"};
  return fmt::format(" {}(worker {} at {} ms, {} ms{})", kNames[static_cast<size_t>(fault.kind)],
                     fault.worker, absl::ToInt64Milliseconds(fault.at),
                     absl::ToInt64Milliseconds(fault.lasting), fault.returns ? ", returns" : "");
}

std::string Describe(const ServerFault& fault) {
  constexpr std::string_view kNames[] = {"kill", "power cut", "disk call fails", "disk full"};
  constexpr std::string_view kMoments[] = {"",
                                           " while it writes",
                                           " while it logs",
                                           " while it saves",
                                           " with a new segment",
                                           " while it redoes"};
  const std::string who =
      fault.hits_all ? std::string("all servers") : fmt::format("server {}", fault.shard);
  std::string text = fmt::format(
      " {}({} at {} ms{}, {} ms, {} calls", kNames[static_cast<size_t>(fault.kind)], who,
      absl::ToInt64Milliseconds(fault.at), kMoments[static_cast<size_t>(fault.moment)],
      absl::ToInt64Milliseconds(fault.lasting), fault.calls);
  if (fault.damages) text += ", damages a checkpoint";
  if (fault.redos > 0) text += fmt::format(", and {} times while it redoes", fault.redos);
  return text + ")";
}

std::string DescribeRestarts(const Scenario& scenario) {
  const DurabilitySpec& durability = scenario.run.durability;
  std::string text;
  for (const ServerFault& fault : scenario.faults.servers) text += Describe(fault);
  if (durability.saves()) {
    text += fmt::format(" checkpoints every {} ms in {} ms, journal in {} us",
                        absl::ToInt64Milliseconds(durability.interval),
                        absl::ToInt64Milliseconds(scenario.save_time_max),
                        absl::ToInt64Microseconds(scenario.journal_time_max));
  }
  if (durability.keeps_log()) {
    text += fmt::format(" synced in {} us, redone in {} ms",
                        absl::ToInt64Microseconds(scenario.log_time_max),
                        absl::ToInt64Milliseconds(scenario.redo_time_max));
  }
  return text;
}

std::string DescribeStop(const TrainingSpec& training) {
  std::string text;
  if (training.max_steps > 0) text += fmt::format(" max_steps={}", training.max_steps);
  if (training.max_seconds > 0) text += fmt::format(" max_seconds={}", training.max_seconds);
  if (training.target_accuracy > 0) {
    text += fmt::format(" target_accuracy={}", training.target_accuracy);
  }
  return text;
}

}  // namespace

std::string Describe(const Scenario& scenario) {
  const RunSpec& run = scenario.run;
  std::string text = fmt::format(
      "seed {}: {} n={} slack={} backups={} guard={}:{} workers={} shards={} epochs={} batches={} "
      "batch_size={} "
      "scaling={} "
      "lease={}ms delay<={}us update<={}us push_bytes_max={} joins={}; faults: loss={} "
      "duplicates={} per mille, late<={}ms, failure<={}ms, cancel<={}ms, until {} ms;",
      scenario.seed, RowOf(run.consistency.policy).name, run.consistency.parameters["n"],
      run.consistency.parameters["slack"], run.consistency.parameters["backups"],
      ActionName(scenario.guard().action), scenario.guard().bound, run.cluster.workers,
      scenario.shards, run.training.epochs, scenario.batches_total(), run.training.batch_size,
      RowOf(run.optimizer.staleness_scaling).name, absl::ToInt64Milliseconds(run.cluster.lease),
      absl::ToInt64Microseconds(scenario.delay_max),
      absl::ToInt64Microseconds(scenario.update_time_max), run.wire.push_bytes_max,
      scenario.joins.size(), scenario.faults.loss_per_mille, scenario.faults.duplicate_per_mille,
      absl::ToInt64Milliseconds(scenario.faults.late_max),
      absl::ToInt64Milliseconds(scenario.faults.failure_max),
      absl::ToInt64Milliseconds(scenario.faults.cancel_max),
      absl::ToInt64Milliseconds(scenario.faults.end));
  for (const WorkerFault& fault : scenario.faults.workers) text += Describe(fault);
  for (const AggregatorFault& fault : scenario.faults.aggregators) {
    text += fmt::format(" kill(aggregator {}.{} at {} ms{})", fault.group, fault.shard,
                        absl::ToInt64Milliseconds(fault.at), fault.returns ? ", returns" : "");
  }
  text += DescribeRestarts(scenario);
  if (run.cluster.tree.fanout > 0) text += fmt::format(" fanout={}", run.cluster.tree.fanout);
  if (scenario.waits_for_lost()) text += " waits for the lost";
  if (run.training.pipeline_depth > 1) text += " pipeline_depth=2";
  if (run.worker.has_free_lanes()) text += " free lanes";
  if (run.consistency.parameters["c"] > 0) {
    text += fmt::format(" c={}", run.consistency.parameters["c"]);
  }
  for (const PolicyStage& stage : run.policies_before) {
    text += fmt::format(" before={}", RowOf(stage.consistency.policy).name);
    for (const auto& [key, value] :
         ParametersOf(RowOf(stage.consistency.policy), stage.consistency.parameters)) {
      text += fmt::format(":{}={}", key, value);
    }
  }
  for (const PolicyChange& change : scenario.changes) {
    text += fmt::format(" change={}@{}ms", RowOf(change.policy.policy).name,
                        absl::ToInt64Milliseconds(change.at));
  }
  if (run.worker.quantum() > 1) text += fmt::format(" steps={}", run.worker.quantum());
  if (RowOf(run.worker.algorithm).keeps_weights) text += " keeps";
  if (run.worker.pushes_per_fetch() > 1) {
    text += fmt::format(" fetches every {}", run.worker.pushes_per_fetch());
  }
  if (run.worker.fragments() > 1) {
    text += fmt::format(" fragments={} delay={}", run.worker.fragments(),
                        run.worker.parameters["fragment_delay"]);
  }
  if (scenario.has_nonfinite_steps) text += " nonfinite steps";
  if (run.worker.steps_by_speed) text += " by speed";
  if (run.wire.push_codec != Encoding::kFp32) {
    text += fmt::format(" push_codec={}", RowOf(run.wire.push_codec).name);
  }
  text += fmt::format(" rule={}", RowOf(run.server_optimizer().kind).name);
  if (!run.optimizer.per_tensor.empty()) text += " options of tensors";
  for (const ReaderPlan& reader : scenario.readers) {
    text += fmt::format(" reader:lag_max={}{}", reader.lag_max, reader.dies ? " dies" : "");
  }
  return text + DescribeStop(run.training);
}

}  // namespace slipstream
