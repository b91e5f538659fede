#include "worker/compute/cpu/plain_vector.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace slipstream::plain {

void DenseForward(const DenseShape& shape, uint32_t count, const float* input, const float* weight,
                  const float* bias, float* output) {
  for (uint32_t example = 0; example < count; ++example, input += shape.inputs) {
    const float* row = weight;
    for (uint32_t unit = 0; unit < shape.units; ++unit, row += shape.inputs) {
      float sum = 0;
      for (uint32_t i = 0; i < shape.inputs; ++i) sum += row[i] * input[i];
      *output++ = sum + bias[unit];
    }
  }
}

void DenseParameterGradients(const DenseShape& shape, uint32_t count, const float* input,
                             const float* output_gradient, float* weight_gradient,
                             float* bias_gradient) {
  std::fill_n(weight_gradient, size_t{shape.units} * shape.inputs, 0.0f);
  std::fill_n(bias_gradient, shape.units, 0.0f);
  for (uint32_t example = 0; example < count; ++example, input += shape.inputs) {
    float* row = weight_gradient;
    for (uint32_t unit = 0; unit < shape.units; ++unit, row += shape.inputs) {
      const float gradient = *output_gradient++;
      bias_gradient[unit] += gradient;
      for (uint32_t i = 0; i < shape.inputs; ++i) row[i] += gradient * input[i];
    }
  }
}

void DenseInputGradient(const DenseShape& shape, uint32_t count, const float* weight,
                        const float* output_gradient, float* input_gradient) {
  std::fill_n(input_gradient, size_t{count} * shape.inputs, 0.0f);
  for (uint32_t example = 0; example < count; ++example, input_gradient += shape.inputs) {
    const float* row = weight;
    for (uint32_t unit = 0; unit < shape.units; ++unit, row += shape.inputs) {
      const float gradient = *output_gradient++;
      for (uint32_t i = 0; i < shape.inputs; ++i) input_gradient[i] += gradient * row[i];
    }
  }
}

void Relu(std::span<const float> input, std::span<float> output) {
  PS_CHECK(input.size() == output.size());
  for (size_t i = 0; i < input.size(); ++i) output[i] = std::max(input[i], 0.0f);
}

void ReluInputGradient(std::span<const float> output, std::span<const float> output_gradient,
                       std::span<float> input_gradient) {
  PS_CHECK(output.size() == output_gradient.size() && output.size() == input_gradient.size());
  for (size_t i = 0; i < output.size(); ++i) {
    const float gradient = output_gradient[i];
    input_gradient[i] = output[i] > 0 ? gradient : 0.0f;
  }
}

void Tanh(std::span<const float> input, std::span<float> output) {
  PS_CHECK(input.size() == output.size());
  for (size_t i = 0; i < input.size(); ++i) output[i] = std::tanh(input[i]);
}

void TanhInputGradient(std::span<const float> output, std::span<const float> output_gradient,
                       std::span<float> input_gradient) {
  PS_CHECK(output.size() == output_gradient.size() && output.size() == input_gradient.size());
  for (size_t i = 0; i < output.size(); ++i) {
    input_gradient[i] = output_gradient[i] * (1.0f - output[i] * output[i]);
  }
}

}  // namespace slipstream::plain
