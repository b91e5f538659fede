#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_MATH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_MATH_H_

#include <cmath>

#include "worker/compute/activation.h"
#include "worker/compute/cuda/host_device.h"

namespace slipstream::cuda {

/// The computation of vector_kernels.h for one element; twins of plain_vector.h.

/// Applies the activation; a NaN stays NaN.
PS_HOST_DEVICE inline float Activated(Activation activation, float value) {
  if (activation == Activation::kRelu) return value < 0 ? 0.0f : value;
  if (activation == Activation::kTanh) return ::tanhf(value);
  return value;
}

/// Returns the gradient of the activation's input. `output` is the result of Activated.
PS_HOST_DEVICE inline float ActivationGradient(Activation activation, float output,
                                               float output_gradient) {
  if (activation == Activation::kRelu) return output > 0 ? output_gradient : 0.0f;
  if (activation == Activation::kTanh) return output_gradient * (1.0f - output * output);
  return output_gradient;
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_MATH_H_
