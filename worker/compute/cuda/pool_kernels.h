#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_KERNELS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// Pooling; twins of plain_image.h, and equal to them to the bit. Own kernels, since cuDNN's pads
/// both sides alike and so has no partial window at one end (PyTorch's ceil_mode).
///
/// Pointers are of device memory; each call enqueues on `stream` and returns.

/// Of a maximum, `places` gets for each output where in its plane that lies, the first in row-major
/// order; null unless somebody asks for gradients.
absl::Status PoolForward(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                         const float* input, float* output, uint32_t* places);

/// The gradient of a maximum goes to where `places` says that it lies.
absl::Status PoolInputGradient(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                               const uint32_t* places, const float* output_gradient,
                               float* input_gradient);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_KERNELS_H_
