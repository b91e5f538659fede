#include "deploy/psctl/run/process_plan.h"

#include <numeric>

namespace slipstream {

std::vector<ProcessName> ProcessesOf(uint32_t rank, const ClusterSpec& cluster,
                                     std::span<const uint32_t> workers) {
  std::vector<ProcessName> processes;
  const auto nodes = static_cast<uint32_t>(workers.size());
  const auto shards = static_cast<uint32_t>(cluster.servers.size());
  for (uint32_t shard = rank; shard < shards; shard += nodes) {
    processes.push_back({Role::kServer, shard});
  }
  const uint32_t first = std::accumulate(workers.begin(), workers.begin() + rank, 0U);
  const uint32_t end = first + workers[rank];
  for (uint32_t group = 0; group < cluster.groups(); ++group) {
    const uint32_t its_first = group * cluster.tree.fanout;
    if (its_first < first || its_first >= end) continue;
    for (uint32_t shard = 0; shard < shards; ++shard) {
      processes.push_back({.role = Role::kAggregator, .number = shard, .group = group});
    }
  }
  for (uint32_t worker = first; worker < end; ++worker) {
    processes.push_back({Role::kWorker, worker});
  }
  return processes;
}

}  // namespace slipstream
