#include "server/core/shard/shard_options.h"

#include "server/core/run_stages.h"

namespace slipstream {

ShardMachine::Options ShardOptionsOf(const RunSpec& run, ShardId shard) {
  return {.shard = shard,
          .stages = StagesOf(run),
          .optimizer = run.server_optimizer(),
          .pushes = run.pushes(),
          .quantum = run.quantum(),
          .sums_pushes = RowOf(run.worker.algorithm).sums_pushes,
          .takes_composites = run.cluster.groups() > 0,
          .batch_size = run.training.batch_size,
          .epochs = run.training.epochs,
          .gradients_in_flight = run.training.pipeline_depth,
          .push_bytes_max = run.wire.push_bytes_max,
          .versions_kept = run.versions_kept(),
          .repeats_rounds = run.repeats_rounds(),
          .saves = run.durability.saves(),
          .keeps_log = run.durability.keeps_log()};
}

}  // namespace slipstream
