#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODE_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "worker/compute/cuda/pass_block.h"

namespace slipstream::cuda {

/// A pass of one mini-batch, or of a device's part of it, through the nodes of a plan, while it is
/// enqueued. Addresses are those of the device and stay the same for all passes of one size.
struct CudaPass {
  uint32_t first_example = 0;  // Its position in the mini-batch.
  uint32_t count = 0;          // Examples.
  bool training = false;
  const PassInputs* inputs = nullptr;
  const float* weights = nullptr;  // Placed by ArenaMap.
  float* gradients = nullptr;      // Placed by ArenaMap; null unless training.
  void* workspace = nullptr;       // Calls use it one after another.
  size_t workspace_bytes = 0;      // At least as many as each node needs.

  /// Called once the kernels that compute the gradients of the node's parameters are enqueued.
  std::function<absl::Status()> gradients_enqueued;
};

/// One or two consecutive layers of a net, computed together. Activations and their gradients are
/// plain: [count, channels, height, width], row-major, 256-byte aligned.
///
/// Functions enqueue work on the context's compute stream, which may be capturing a graph: they
/// must neither wait nor allocate.
///
/// Not thread-safe: owned by one plan.
class CudaNode {
 public:
  virtual ~CudaNode() = default;

  /// The bytes of workspace that a library may use in any prepared pass.
  virtual size_t workspace_bytes() const { return 0; }

  /// Chooses algorithms, if there is a choice, for the passes of `count` examples that follow until
  /// the next call. May allocate.
  virtual absl::Status Prepare(uint32_t /*count*/) { return absl::OkStatus(); }

  virtual absl::Status Forward(const CudaPass& pass, const float* input, float* output) = 0;

  /// Enqueues the backward pass. `input` and `output` are those of Forward. Writes the gradients of
  /// the node's parameters, calls pass.gradients_enqueued, and then writes `input_gradient` unless
  /// it is null. May overwrite `output_gradient`.
  virtual absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                                float* output_gradient, float* input_gradient) = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_NODE_H_
