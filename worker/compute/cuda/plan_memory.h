#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMORY_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/cuda/batch_block.h"
#include "worker/compute/cuda/cuda_nodes.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/loss_math.h"
#include "worker/compute/cuda/pass_block.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// All memory of one plan on one of its devices, which must be current during the allocation, and
/// the memory of that device's outputs. Addresses never change, because graphs contain them.
struct PlanMemory {
  /// `block` and `options` describe the device's part of the batch. RESOURCE_EXHAUSTED names what
  /// did not fit.
  static absl::StatusOr<PlanMemory> Allocate(const BatchBlock& block, const ArenaMap& map,
                                             const std::vector<PlacedNode>& nodes,
                                             const PlanOptions& options);

  DeviceArray<float> weights;               // Placed by ArenaMap.
  DeviceArray<float> gradients;             // Placed by ArenaMap; empty if the plan only evaluates.
  std::vector<DeviceArray<float>> outputs;  // One per node.
  std::array<DeviceArray<float>, 2> output_gradients;  // One of a node, one of the node before it.
  DeviceArray<std::byte> batch;                        // In the layout of BatchBlock.
  DeviceArray<RowLoss> losses;
  DeviceArray<std::byte> workspace;

  // In host memory; the device writes them.
  PinnedArray<PassOutputs> totals;  // A single value.
  PinnedArray<uint32_t> flags;      // One for the loss, and one per node with parameters.
};

/// The host's arenas, which all devices of a plan share.
struct HostMemory {
  static absl::StatusOr<HostMemory> Allocate(const NetSizes& net, const PlanOptions& options);

  PinnedArray<float> weights;
  std::span<float> gradients;  // Empty if the plan only evaluates; else in one of:
  PinnedPages caller_gradients;
  PinnedArray<float> own_gradients;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMORY_H_
