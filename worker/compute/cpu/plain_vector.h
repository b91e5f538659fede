#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_VECTOR_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_VECTOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/compute/layer_shapes.h"

namespace slipstream::plain {

/// Dense layers and activations straight from their definitions. Vectors are rows of [count,
/// elements].

/// Computes output = input weightᵀ + bias.
void DenseForward(const DenseShape& shape, uint32_t count, const float* input, const float* weight,
                  const float* bias, float* output);

/// Computes the gradients of the weight and the bias, summed over the batch in order.
void DenseParameterGradients(const DenseShape& shape, uint32_t count, const float* input,
                             const float* output_gradient, float* weight_gradient,
                             float* bias_gradient);

void DenseInputGradient(const DenseShape& shape, uint32_t count, const float* weight,
                        const float* output_gradient, float* input_gradient);

/// Activations; `input` and `output` may be the same. The gradients are computed from the outputs;
/// REQUIRES: the spans have equal size.
void Relu(std::span<const float> input, std::span<float> output);
void ReluInputGradient(std::span<const float> output, std::span<const float> output_gradient,
                       std::span<float> input_gradient);
void Tanh(std::span<const float> input, std::span<float> output);
void TanhInputGradient(std::span<const float> output, std::span<const float> output_gradient,
                       std::span<float> input_gradient);

}  // namespace slipstream::plain

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_VECTOR_H_
