#include "server/core/run_stages.h"

#include <algorithm>
#include <ranges>

namespace slipstream {

std::vector<RunStage> StagesOf(const RunSpec& run) {
  std::vector<RunStage> stages;
  for (const PolicyStage& stage : run.stages()) {
    stages.push_back({.consistency = stage.consistency,
                      .learning_rate = run.server_optimizer(stage.consistency).learning_rate,
                      .until_epoch = stage.until_epoch});
  }
  return stages;
}

std::vector<RunStage> WithChange(const std::vector<RunStage>& stages, uint32_t present,
                                 const RunChange& change, bool begins_at_once,
                                 uint32_t until_epoch) {
  const auto begin = stages.begin() + present;
  std::vector<RunStage> next(begin, stages.end());
  if (change.sets_policy) {
    next = {{.consistency = change.settings.consistency,
             .until_epoch = change.settings.training.epochs,
             .begins_at_once = begin->begins_at_once}};
  }
  for (RunStage& stage : next) {
    stage.learning_rate = change.settings.server_optimizer(stage.consistency).learning_rate;
  }
  if (std::equal(next.begin(), next.end(), begin, stages.end())) return stages;
  std::vector<RunStage> changed(stages.begin(), begin + 1);
  next.front().begins_at_once = begins_at_once;
  if (!begins_at_once) {
    changed.back().until_epoch = until_epoch;
    std::erase_if(
        next, [until_epoch](const RunStage& stage) { return stage.until_epoch <= until_epoch; });
  }
  changed.insert(changed.end(), next.begin(), next.end());
  return changed;
}

}  // namespace slipstream
