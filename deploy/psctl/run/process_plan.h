#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_PROCESS_PLAN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_PROCESS_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/run/process_end.h"

namespace slipstream {

/// Returns how many workers each node has: those of the run in shares that differ by one at most,
/// or as `per_node` says, which has a number for each node, or one for all. INVALID_ARGUMENT if it
/// has another count, or no worker at all.
absl::StatusOr<std::vector<uint32_t>> WorkersByNode(uint32_t nodes, uint32_t workers,
                                                    std::span<const uint32_t> per_node);

/// Returns the processes of the node with this rank, in the order in which they start: shards go
/// round the nodes, the first one to node 0; workers have their ids in the order of nodes; and a
/// group's aggregators are where its first worker is. All nodes return parts of one whole.
/// REQUIRES: `workers` has the number of workers of each node, and adds up to cluster.workers.
std::vector<ProcessName> ProcessesOf(uint32_t rank, const ClusterSpec& cluster,
                                     std::span<const uint32_t> workers);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_PROCESS_PLAN_H_
