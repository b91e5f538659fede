#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/cuda/cuda_node.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/net_layers.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// A node, the size of one example's output, and where its layers' parameters lie in the flat
/// vector (empty if they have none).
struct PlacedNode {
  std::unique_ptr<CudaNode> node;
  size_t outputs = 0;
  ParameterRange parameters;
};

/// Maps each layer's weight and bias.
ArenaMap MapOf(const NetLayers& layers);

/// Makes one node for each layer. The node of a dense layer or convolution includes the activation
/// that follows. `context` must outlive the nodes.
absl::StatusOr<std::vector<PlacedNode>> MakeNodes(const DeviceContext& context,
                                                  const NetLayers& layers, const ArenaMap& map,
                                                  const PlanOptions& options);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODES_H_
