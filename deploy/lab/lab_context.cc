#include "deploy/lab/lab_context.h"

namespace slipstream {

VirtualRoute LabContext::WayToShards(WorkerId worker) const {
  return {
      .peer = [this](ShardId shard) -> VirtualPeer& { return *servers[Value(shard)]; },
      .to = [this, worker](ShardId shard, uint64_t bytes,
                           absl::Time now) { return links.ToServer(worker, shard, bytes, now); },
      .from = [this, worker](ShardId shard, uint64_t bytes,
                             absl::Time now) { return links.ToWorker(shard, worker, bytes, now); }};
}

std::optional<VirtualRoute> LabContext::WayToAggregators(WorkerId worker) const {
  const ClusterSpec& cluster = run.cluster;
  if (cluster.groups() == 0 || Value(worker) >= cluster.workers) return std::nullopt;
  const uint32_t group = Value(worker) / cluster.tree.fanout;
  return VirtualRoute{
      .peer = [this, group](ShardId shard) -> VirtualPeer& { return aggregator(group, shard); },
      .to = [this, worker](ShardId, uint64_t bytes,
                           absl::Time now) { return links.ToGroup(worker, bytes, now); },
      .from = [this, worker](ShardId, uint64_t bytes,
                             absl::Time now) { return links.FromGroup(worker, bytes, now); }};
}

}  // namespace slipstream
