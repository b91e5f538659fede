#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_IMAGE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_IMAGE_H_

#include <cstdint>

#include "worker/compute/layer_shapes.h"

namespace slipstream::plain {

/// Convolution and pooling straight from their definitions, for any shape: the reference for the
/// fast kernels. Images are [count, channels, height, width], row-major.

/// Computes output = input ⋆ weight + bias, a cross-correlation with zero padding.
void Conv2dForward(const Conv2dShape& shape, uint32_t count, const float* input,
                   const float* weight, const float* bias, float* output);

/// Computes the gradients of the weight and the bias, summed over the batch.
void Conv2dParameterGradients(const Conv2dShape& shape, uint32_t count, const float* input,
                              const float* output_gradient, float* weight_gradient,
                              float* bias_gradient);

void Conv2dInputGradient(const Conv2dShape& shape, uint32_t count, const float* weight,
                         const float* output_gradient, float* input_gradient);

void PoolForward(const PoolShape& shape, uint32_t count, const float* input, float* output);

/// The gradient of a maximum goes to its first position in row-major order.
void PoolInputGradient(const PoolShape& shape, uint32_t count, const float* input,
                       const float* output_gradient, float* input_gradient);

}  // namespace slipstream::plain

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_IMAGE_H_
