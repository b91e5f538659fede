#include "worker/compute/cuda/plan_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/log/log.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

template <typename Array>
absl::Status Take(Array& array, size_t size, const char* what) {
  return Keep(array, Array::Allocate(size, what));
}

absl::Status TakeForTraining(PlanMemory& memory, const ArenaMap& map, size_t largest_output) {
  PS_RETURN_IF_ERROR(Take(memory.gradients, map.size(), "gradients"));
  for (DeviceArray<float>& gradients : memory.output_gradients) {
    PS_RETURN_IF_ERROR(Take(gradients, largest_output, "the gradients of activations"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanMemory> PlanMemory::Allocate(const BatchBlock& block, const ArenaMap& map,
                                                const std::vector<PlacedNode>& nodes,
                                                const PlanOptions& options) {
  PlanMemory memory;
  const size_t count = options.batch_size_max;
  PS_RETURN_IF_ERROR(Take(memory.weights, map.size(), "weights"));
  size_t largest_output = 0;
  size_t workspace = 0;
  for (const PlacedNode& node : nodes) {
    PS_RETURN_IF_ERROR(Take(memory.outputs.emplace_back(), count * node.outputs, "activations"));
    largest_output = std::max(largest_output, count * node.outputs);
    workspace = std::max(workspace, node.node->workspace_bytes());
  }
  PS_RETURN_IF_ERROR(Take(memory.batch, block.end, "a batch"));
  PS_RETURN_IF_ERROR(Take(memory.losses, count, "losses"));
  PS_RETURN_IF_ERROR(Take(memory.workspace, workspace, "workspace"));
  PS_RETURN_IF_ERROR(Take(memory.totals, 1, "totals"));
  PS_RETURN_IF_ERROR(Take(memory.flags, 1 + nodes.size(), "flags"));
  if (options.trains) PS_RETURN_IF_ERROR(TakeForTraining(memory, map, largest_output));
  return memory;
}

absl::StatusOr<HostMemory> HostMemory::Allocate(const NetSizes& net, const PlanOptions& options) {
  HostMemory memory;
  PS_RETURN_IF_ERROR(Take(memory.weights, net.parameters, "weights"));
  if (!options.trains) return memory;
  PS_CHECK(options.gradients.empty() || options.gradients.size() == net.parameters);
  memory.gradients = options.gradients;
  if (!memory.gradients.empty()) {
    const absl::Status pinned =
        Keep(memory.caller_gradients, PinnedPages::Pin(std::as_writable_bytes(memory.gradients)));
    if (pinned.ok()) return memory;
    LogInfo("taking memory for gradients, as the caller's cannot be pinned",
            {{"reason", pinned.message()}});
  }
  PS_RETURN_IF_ERROR(Take(memory.own_gradients, net.parameters, "gradients"));
  memory.gradients = memory.own_gradients.span();
  return memory;
}

}  // namespace slipstream::cuda
