#ifndef SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_PLAN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace slipstream {

/// Returns how many workers each node has: those of the run in shares that differ by one at most,
/// or as `per_node` says, which has a number for each node, or one for all. INVALID_ARGUMENT if it
/// has another count, or no worker at all.
absl::StatusOr<std::vector<uint32_t>> WorkersByNode(uint32_t nodes, uint32_t workers,
                                                    std::span<const uint32_t> per_node);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_PLAN_H_
