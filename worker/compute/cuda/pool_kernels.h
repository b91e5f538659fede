#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_KERNELS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// Pooling; twins of plain_image.h, with bit-equal results. These are our own kernels, because
/// cuDNN pads both sides alike and so has no partial window at one end (PyTorch's ceil_mode).
///
/// Pointers are to device memory; each call enqueues on `stream` and returns.

/// Computes the outputs. For maximum pools, `places` receives for each output the position of its
/// maximum in the plane, the first in row-major order; `places` is null unless gradients are
/// needed.
absl::Status PoolForward(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                         const float* input, float* output, uint32_t* places);

/// Computes the input's gradient. The gradient of a maximum goes to its position in `places`.
absl::Status PoolInputGradient(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                               const uint32_t* places, const float* output_gradient,
                               float* input_gradient);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_KERNELS_H_
