#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/cuda/pool_kernels.h"
#include "worker/compute/cuda/pool_math.h"

namespace slipstream::cuda {
namespace {

__global__ void PoolForwardKernel(PoolShape shape, size_t size, const float* input, float* output) {
  ForEach(size, [=](size_t i) { output[i] = Pooled(shape, input, i); });
}

__global__ void PoolInputGradientKernel(PoolShape shape, size_t size, const float* input,
                                        const float* output_gradient, float* input_gradient) {
  ForEach(size, [=](size_t i) {
    input_gradient[i] = PoolInputGradient(shape, input, output_gradient, i);
  });
}

}  // namespace

absl::Status PoolForward(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                         const float* input, float* output) {
  const size_t size = count * shape.output.elements();
  return Launch("PoolForward", stream, BlocksFor(size), kThreads, PoolForwardKernel, shape, size,
                input, output);
}

absl::Status PoolInputGradient(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                               const float* input, const float* output_gradient,
                               float* input_gradient) {
  const size_t size = count * shape.input.elements();
  return Launch("PoolInputGradient", stream, BlocksFor(size), kThreads, PoolInputGradientKernel,
                shape, size, input, output_gradient, input_gradient);
}

}  // namespace slipstream::cuda
