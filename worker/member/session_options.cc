#include "worker/member/session_options.h"

#include "common/settings/algorithm_rows.h"

namespace slipstream {

WorkerSession::Options SessionOptionsFor(const RunSpec& run, const Identity& identity,
                                         const ShardMap& map) {
  const PolicyTraits first = run.StageOf(0).consistency.traits();
  const AlgorithmRow& algorithm = RowOf(run.worker.algorithm);
  return {.identity = identity,
          .shard_map = map.fingerprint(),
          .pushes = run.pushes(),
          .core = {.shards = map.shards(),
                   .in_step = first.in_step,
                   .depth = run.training.pipeline_depth,
                   .quantum = run.quantum(),
                   .keeps_weights = algorithm.keeps_weights,
                   .pushes_per_fetch = run.pushes_per_fetch(),
                   .releases_unused = first.waits_for_members}};
}

}  // namespace slipstream
