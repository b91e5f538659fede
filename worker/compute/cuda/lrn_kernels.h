#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_LRN_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_LRN_KERNELS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// Local response normalisation; twins of plain_lrn.h. These are our own kernels, because cuDNN has
/// none over windows within a channel.
///
/// Pointers are to device memory; each call enqueues on `stream` and returns.

/// Computes the outputs. `scales` receives 1 + α/N Σ x² of each; it is null unless gradients are
/// needed.
absl::Status LrnForward(cudaStream_t stream, const LrnShape& shape, uint32_t count,
                        const float* input, float* output, float* scales);

/// The arrays that the gradient of a normalisation is computed from.
struct LrnPass {
  const float* input = nullptr;
  const float* output = nullptr;
  const float* scales = nullptr;
  const float* output_gradient = nullptr;
};

absl::Status LrnInputGradient(cudaStream_t stream, const LrnShape& shape, uint32_t count,
                              const LrnPass& pass, float* input_gradient);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_LRN_KERNELS_H_
