#include "server/core/shard_core_options.h"

namespace slipstream {

ShardCore::Options ShardCoreOptions(const RunSpec& run, ShardId shard) {
  return {.consistency = run.consistency,
          .staleness_scaling = run.optimizer.staleness_scaling,
          .scales_step = run.optimizer.is_adam(),
          .learning_rate = run.optimizer.learning_rate,
          .schedule = run.optimizer.schedule,
          .epochs = run.training.epochs,
          .is_first = shard == ShardId{0},
          .gradients_in_flight = run.training.pipeline_depth,
          .push_bytes_max = run.wire.push_bytes_max};
}

}  // namespace slipstream
