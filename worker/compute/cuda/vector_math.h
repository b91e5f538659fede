#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_MATH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_MATH_H_

#include <cmath>

#include "worker/compute/activation.h"
#include "worker/compute/cuda/host_device.h"

namespace slipstream::cuda {

/// One element of what vector_kernels.h computes; twins of plain_vector.h.

/// A NaN stays one.
PS_HOST_DEVICE inline float Activated(Activation activation, float value) {
  if (activation == Activation::kRelu) return value < 0 ? 0.0f : value;
  if (activation == Activation::kTanh) return ::tanhf(value);
  return value;
}

/// `output` is what Activated returned.
PS_HOST_DEVICE inline float ActivationGradient(Activation activation, float output,
                                               float output_gradient) {
  if (activation == Activation::kRelu) return output > 0 ? output_gradient : 0.0f;
  if (activation == Activation::kTanh) return output_gradient * (1.0f - output * output);
  return output_gradient;
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_MATH_H_
