#include "deploy/psctl/node/node_plan.h"

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

}  // namespace slipstream
