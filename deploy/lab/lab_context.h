#ifndef SLIPSTREAM_DEPLOY_LAB_LAB_CONTEXT_H_
#define SLIPSTREAM_DEPLOY_LAB_LAB_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"
#include "deploy/lab/compute_pool.h"
#include "deploy/lab/compute_times.h"
#include "deploy/lab/event_queue.h"
#include "deploy/lab/links.h"
#include "deploy/lab/virtual_server.h"
#include "deploy/lab/world_spec.h"
#include "server/core/coordinator/coordinator.h"

namespace slipstream {

/// The surroundings of a virtual worker. All that is referred to must outlive it.
struct LabContext {
  const RunSpec& run;
  const WorldSpec& world;
  EventQueue& queue;
  Coordinator& coordinator;
  const std::vector<std::unique_ptr<VirtualServer>>& servers;

  /// Returns the aggregator of a group before a shard. REQUIRES: the run has a tree.
  std::function<VirtualPeer&(uint32_t group, ShardId shard)> aggregator;
  Links& links;
  ComputePool& pool;
  ComputeTimes& times;
  const TensorLayout& layout;

  /// The number of examples of the training set.
  uint64_t examples = 0;

  /// Has to be called after each call to the coordinator: others may wait for what it changed.
  std::function<void()> on_coordinator_called;

  /// Return the ways from a worker to the shards and to the aggregators before them; nothing if it
  /// has none.
  VirtualRoute WayToShards(WorkerId worker) const;
  std::optional<VirtualRoute> WayToAggregators(WorkerId worker) const;

  uint64_t batches_per_epoch() const {
    return (examples + run.training.batch_size - 1) / run.training.batch_size;
  }

  /// The number of examples of a mini-batch of the run-long sequence: the last one of an epoch may
  /// have fewer.
  uint32_t ExamplesOf(uint64_t batch) const {
    const uint64_t size = run.training.batch_size;
    const uint64_t before = batch % batches_per_epoch() * size;
    return static_cast<uint32_t>(std::min(size, examples - before));
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_LAB_CONTEXT_H_
