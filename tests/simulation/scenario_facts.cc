#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/simulation/scenario.h"

namespace slipstream {

uint32_t Scenario::batches_total() const {
  const uint32_t batches = batches_per_epoch() * run.training.epochs;
  if (run.training.max_steps == 0) return batches;
  return static_cast<uint32_t>(std::min<uint64_t>(batches, run.training.max_steps));
}

uint32_t Scenario::ExamplesOf(uint64_t batch) const {
  const uint64_t of_epoch = batch % batches_per_epoch();
  const uint64_t first = of_epoch * run.training.batch_size;
  return static_cast<uint32_t>(
      std::min<uint64_t>(run.training.batch_size, examples_per_epoch - first));
}

uint32_t Scenario::StageOfBatch(uint64_t batch) const {
  uint32_t stage = 0;
  for (const PolicyStage& one : run.policies_before) {
    if (batch >= std::min(batches_total(), one.until_epoch * batches_per_epoch())) ++stage;
  }
  return stage;
}

bool Scenario::shows_gradients() const {
  const Encoding codec = run.wire.push_codec;
  if (run.consistency.traits().adds_in_place())
    return false;  // A version may hold parts of later ones.
  return run.server_optimizer().kind == RuleKind::kSgd && run.optimizer.per_tensor.empty() &&
         codec != Encoding::kOneBit && codec != Encoding::kTwoBit;
}

bool Scenario::may_combine() const {
  std::vector<ConsistencySpec> policies;
  for (const PolicyStage& stage : run.stages()) policies.push_back(stage.consistency);
  for (const PolicyChange& change : changes) policies.push_back(change.policy);
  const bool are_combined = std::ranges::all_of(policies, [&](const ConsistencySpec& policy) {
    const bool is_one = policy.policy == PolicyKind::kHardsync ||
                        policy.policy == PolicyKind::kSoftsync ||
                        policy.policy == PolicyKind::kAsync;
    return is_one && policy.traits().weighing == policies.front().traits().weighing;
  });
  return are_combined && run.worker.algorithm == AlgorithmKind::kGradient &&
         !RowOf(run.optimizer.staleness_scaling).uses_base_weights && run.cluster.workers > 1;
}

uint32_t Scenario::stages_in_rounds() const {
  uint32_t stages = 0;
  for (uint32_t i = 0; i <= run.policies_before.size(); ++i) stages += HasRounds(i) ? 1 : 0;
  return stages;
}

absl::Duration Scenario::ComputeTimeOf(WorkerId worker) const {
  return compute_time[std::min<size_t>(Value(worker), compute_time.size() - 1)];
}

}  // namespace slipstream
