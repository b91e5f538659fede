#include "server/core/shard/shard_rules.h"

#include <algorithm>

namespace slipstream {

ShardRules::ShardRules(const ShardMachineOptions& options)
    : options_(options),
      guard_(options.stages.front().consistency.max_staleness),
      rule_(RowOf(options.optimizer.kind)),
      scaling_(RowOf(options.optimizer.staleness_scaling)),
      stage_(options.stages.front()),
      traits_(stage_.consistency.traits()) {
  Adopt({});
}

void ShardRules::Adopt(const RunPosition& run) {
  const std::vector<RunStage>& stages = StagesOf(run);
  stage_ = stages[run.stage];
  traits_ = stage_.consistency.traits();
  takes_excuses_ = std::ranges::any_of(
      stages, [](const RunStage& stage) { return stage.consistency.traits().waits_for_members; });
  policy_ = MakePolicy(stage_.consistency);
  compensation_ = MakeCompensation(options_.optimizer);
  learning_rate_.reset();
  if (!run.plan.has_value()) return;
  learning_rate_.emplace(stage_.learning_rate, options_.optimizer.schedule,
                         LearningRate::Extent{run.plan->examples_per_epoch, options_.epochs});
}

uint64_t ShardRules::EndOf(const RunPosition& run, uint32_t stage) const {
  return StagesOf(run)[stage].BatchesEnd(run.plan->batches_per_epoch, run.plan->batches_total);
}

std::optional<RoundWorkPlan> ShardRules::NewWork(const RunPosition& run) const {
  if (!works_in_rounds() || !is_first()) return std::nullopt;
  const uint64_t begin = run.stage == 0 ? 0 : EndOf(run, run.stage - 1);
  return RoundWorkPlan(EndOf(run, run.stage), options_.quantum, begin);
}

}  // namespace slipstream
