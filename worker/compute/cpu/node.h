#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_NODE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_NODE_H_

#include <cstdint>

#include "common/layout/tensor_layout.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// One pass of a mini-batch through the nodes of a plan.
struct Pass {
  uint32_t count = 0;        // Examples.
  uint64_t batch_index = 0;  // Keys dropout.
  bool training = false;
  const float* weights = nullptr;
  float* gradients = nullptr;            // Null unless training.
  GradientListener* listener = nullptr;  // May be null.

  void GradientReady(ParameterRange range) const {
    if (listener != nullptr) listener->OnGradientReady(range);
  }
};

/// One or more consecutive layers of a net, computed together in the way that was chosen when the
/// plan was prepared.
///
/// Between nodes, activations and their gradients are plain: [count, channels, height, width],
/// row-major, 64-byte aligned except for the examples themselves. Inside a node any layout is
/// allowed. The values that a node keeps from Forward serve only the Backward of the same pass.
///
/// Not thread-safe: owned by one plan.
class Node {
 public:
  virtual ~Node() = default;

  /// Prepares for passes of `count` examples; cheap if that was done before.
  virtual void Prepare(uint32_t count) = 0;

  virtual void Forward(const Pass& pass, const float* input, float* output) = 0;

  /// Runs the backward pass. `input` and `output` are those of Forward. Writes every gradient of
  /// the node's parameters, reports each layer's as it becomes final, last layer first, and writes
  /// `input_gradient` unless it is null. May overwrite `output_gradient`.
  virtual void Backward(const Pass& pass, const float* input, const float* output,
                        float* output_gradient, float* input_gradient) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_NODE_H_
