#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMORY_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/cuda/cuda_nodes.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/loss_math.h"
#include "worker/compute/cuda/pass_block.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// How a batch lies in one block, so that it goes up in one copy: what the pass is told, labels or
/// targets, examples. Offsets are in bytes, and the same for batches of any size.
struct BatchBlock {
  size_t answers = 0;
  size_t examples = 0;
  size_t end = 0;            // With as many examples as there may be.
  size_t example_bytes = 0;  // Of one.

  static BatchBlock For(const NetSizes& net, uint32_t batch_size_max);

  /// Up to the last of `count` examples.
  size_t BytesOf(uint32_t count) const { return examples + count * example_bytes; }
};

/// All memory of one plan. Addresses stay: graphs hold them.
struct PlanMemory {
  /// RESOURCE_EXHAUSTED names what did not fit.
  static absl::StatusOr<PlanMemory> Allocate(const NetSizes& net, const ArenaMap& map,
                                             const std::vector<PlacedNode>& nodes,
                                             const PlanOptions& options);

  // Of the device.
  DeviceArray<float> weights;               // As ArenaMap places them.
  DeviceArray<float> gradients;             // Likewise; empty if the plan only evaluates.
  std::vector<DeviceArray<float>> outputs;  // Of each node.
  std::array<DeviceArray<float>, 2> output_gradients;  // Of one node and of the one before it.
  DeviceArray<std::byte> batch;                        // As BatchBlock says.
  DeviceArray<RowLoss> losses;
  DeviceArray<std::byte> workspace;

  // Of the host.
  PinnedArray<float> weights_host;
  PinnedArray<float> gradients_host;
  PinnedArray<std::byte> batch_host;
  PinnedArray<PassOutputs> totals;  // One.
  PinnedArray<uint32_t> flags;      // One of the loss, and one for each node with parameters.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMORY_H_
