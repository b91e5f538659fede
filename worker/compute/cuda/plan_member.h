#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMBER_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMBER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/cuda/batch_block.h"
#include "worker/compute/cuda/cuda_nodes.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/cuda/plan_memory.h"
#include "worker/compute/net_layers.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// One device of a plan, with the plan's nodes and memory there. All devices of a plan have the
/// same nodes and the same weights, and each has a part of the batch.
struct PlanMember {
  /// `block` and `options` describe the device's part of the batch. Fails like Device::Prepare.
  static absl::StatusOr<PlanMember> New(int device, const NetLayers& layers, const ArenaMap& map,
                                        const BatchBlock& block, const PlanOptions& options);

  /// Enqueues a copy of gradients to the host on the download stream. REQUIRES: the device is
  /// current.
  absl::Status Download(const ArenaMap& map, ParameterRange range, const HostMemory& host) const;

  std::unique_ptr<DeviceContext> context;
  std::vector<PlacedNode> nodes;
  PlanMemory memory;
};

/// Waits for one stream of each member, for example DeviceContext::compute.
absl::Status AwaitAll(const std::vector<PlanMember>& members,
                      cudaStream_t (DeviceContext::*stream)() const);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PLAN_MEMBER_H_
