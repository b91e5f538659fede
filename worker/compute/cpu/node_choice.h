#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_NODE_CHOICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_NODE_CHOICE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "common/model/model_spec.h"
#include "common/model/net_shapes.h"
#include "worker/compute/cpu/cpu_kernels.h"
#include "worker/compute/cpu/node.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// A node, the size of one example's output, and where its layers' parameters lie (empty if they
/// have none).
struct ChosenNode {
  std::unique_ptr<Node> node;
  size_t outputs = 0;
  ParameterRange parameters;
};

/// Cuts a net into nodes, each of which covers the layers that its implementation computes best
/// together. The choice depends only on the net, the processor and `kernels`, so a run's results do
/// not depend on measurements. REQUIRES: `shapes` is InferShapes(model).
std::vector<ChosenNode> ChooseNodes(const ModelSpec& model, const NetShapes& shapes,
                                    const PlanOptions& options, CpuKernels kernels);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_NODE_CHOICE_H_
