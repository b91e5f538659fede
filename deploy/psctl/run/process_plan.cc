#include "deploy/psctl/run/process_plan.h"

#include <fmt/format.h>

#include <numeric>

namespace slipstream {

absl::StatusOr<std::vector<uint32_t>> WorkersByNode(uint32_t nodes, uint32_t workers,
                                                    std::span<const uint32_t> per_node) {
  std::vector<uint32_t> shares(nodes, per_node.size() == 1 ? per_node.front() : workers / nodes);
  if (per_node.empty()) {
    for (uint32_t node = 0; node < workers % nodes; ++node) ++shares[node];
  } else if (per_node.size() != 1) {
    shares.assign(per_node.begin(), per_node.end());
  }
  if (shares.size() != nodes) {
    return absl::InvalidArgumentError(fmt::format(
        "--workers-per-node has {} numbers, and there are {} nodes", shares.size(), nodes));
  }
  const uint64_t sum = std::accumulate(shares.begin(), shares.end(), uint64_t{0});
  if (sum == 0) return absl::InvalidArgumentError("--workers-per-node leaves no worker");
  return shares;
}

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
