#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODE_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "worker/compute/cuda/pass_block.h"

namespace slipstream::cuda {

/// One mini-batch, or a device's part of it, on its way through the nodes of a plan, while it is
/// enqueued. Addresses are of the device and stay what they are for all passes of one size.
struct CudaPass {
  uint32_t first_example = 0;  // Its position in the mini-batch.
  uint32_t count = 0;          // Examples.
  bool training = false;
  const PassInputs* inputs = nullptr;
  const float* weights = nullptr;  // As ArenaMap places them.
  float* gradients = nullptr;      // Likewise; null unless training.
  void* workspace = nullptr;       // For one call after the other.
  size_t workspace_bytes = 0;      // At least what each node needs.

  /// What computes the gradients of the node's parameters has been enqueued.
  std::function<absl::Status()> gradients_enqueued;
};

/// One or two consecutive layers of a net, computed together. Activations and their gradients are
/// plain: [count, channels, height, width], row-major, 256-byte aligned.
///
/// Functions enqueue on the context's compute stream, which may be capturing a graph: they neither
/// wait nor allocate.
///
/// Not thread-safe: owned by one plan.
class CudaNode {
 public:
  virtual ~CudaNode() = default;

  /// What a library may use beside operands and results in any pass that is prepared.
  virtual size_t workspace_bytes() const { return 0; }

  /// Chooses algorithms, if there is a choice, for passes of `count` examples, which follow until
  /// it is called again; may allocate.
  virtual absl::Status Prepare(uint32_t /*count*/) { return absl::OkStatus(); }

  virtual absl::Status Forward(const CudaPass& pass, const float* input, float* output) = 0;

  /// `input` and `output` are those of Forward. Writes the gradients of the node's parameters,
  /// calls pass.gradients_enqueued, and then writes `input_gradient` unless it is null. May
  /// overwrite `output_gradient`.
  virtual absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                                float* output_gradient, float* input_gradient) = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODE_H_
