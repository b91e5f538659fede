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

/// All memory of one plan on one of its devices, which must be current when it is allocated, and
/// what that device tells. Addresses stay: graphs hold them.
struct PlanMemory {
  /// `block` and `options` are of the device's part of the batch. RESOURCE_EXHAUSTED names what did
  /// not fit.
  static absl::StatusOr<PlanMemory> Allocate(const BatchBlock& block, const ArenaMap& map,
                                             const std::vector<PlacedNode>& nodes,
                                             const PlanOptions& options);

  DeviceArray<float> weights;               // As ArenaMap places them.
  DeviceArray<float> gradients;             // Likewise; empty if the plan only evaluates.
  std::vector<DeviceArray<float>> outputs;  // Of each node.
  std::array<DeviceArray<float>, 2> output_gradients;  // Of one node and of the one before it.
  DeviceArray<std::byte> batch;                        // As BatchBlock says.
  DeviceArray<RowLoss> losses;
  DeviceArray<std::byte> workspace;

  // Of the host; the device writes them.
  PinnedArray<PassOutputs> totals;  // One.
  PinnedArray<uint32_t> flags;      // One of the loss, and one for each node with parameters.
};

/// What all devices of a plan share: the host's arenas.
struct HostMemory {
  static absl::StatusOr<HostMemory> Allocate(const NetSizes& net, const PlanOptions& options);

  PinnedArray<float> weights;
  std::span<float> gradients;  // Empty if the plan only evaluates. In one of:
  PinnedPages caller_gradients;
  PinnedArray<float> own_gradients;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMORY_H_
