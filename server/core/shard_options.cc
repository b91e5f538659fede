#include "server/core/shard_options.h"

#include <utility>
#include <vector>

namespace slipstream {

ShardMachine::Options ShardOptionsOf(const RunSpec& run, ShardId shard) {
  std::vector<ShardMachine::Options::Stage> stages;
  for (const PolicyStage& stage : run.stages()) {
    stages.push_back(
        {stage.consistency, run.server_optimizer(stage.consistency), stage.until_epoch});
  }
  const ShardMachine::Options::Stage first = stages.front();
  stages.erase(stages.begin());
  return {.shard = shard,
          .consistency = first.consistency,
          .optimizer = first.optimizer,
          .until_epoch = first.until_epoch,
          .later = std::move(stages),
          .pushes = RowOf(run.worker.algorithm).pushes,
          .quantum = run.worker.quantum(),
          .sums_pushes = RowOf(run.worker.algorithm).sums_pushes,
          .batch_size = run.training.batch_size,
          .epochs = run.training.epochs,
          .gradients_in_flight = run.training.pipeline_depth,
          .push_bytes_max = run.wire.push_bytes_max,
          .versions_kept = run.readers.versions_kept};
}

}  // namespace slipstream
