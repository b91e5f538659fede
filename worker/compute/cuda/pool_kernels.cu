#include <cstdint>

#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/cuda/pool_kernels.h"
#include "worker/compute/cuda/pool_math.h"

namespace slipstream::cuda {
namespace {

template <typename Index>
__global__ void PoolForwardKernel(PoolShape shape, size_t size, const float* input, float* output,
                                  uint32_t* places) {
  ForEach(size, [=](size_t i) { output[i] = Pooled(shape, input, places, static_cast<Index>(i)); });
}

template <typename Index>
__global__ void PoolInputGradientKernel(PoolShape shape, size_t size, const uint32_t* places,
                                        const float* output_gradient, float* input_gradient) {
  ForEach(size, [=](size_t i) {
    input_gradient[i] = PoolInputGradient(shape, places, output_gradient, static_cast<Index>(i));
  });
}

}  // namespace

absl::Status PoolForward(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                         const float* input, float* output, uint32_t* places) {
  const size_t size = count * shape.output.elements();
  return Launch("PoolForward", stream, BlocksFor(size), kThreads,
                FitsInto32Bits(size) ? PoolForwardKernel<uint32_t> : PoolForwardKernel<size_t>,
                shape, size, input, output, places);
}

absl::Status PoolInputGradient(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                               const uint32_t* places, const float* output_gradient,
                               float* input_gradient) {
  const size_t size = count * shape.input.elements();
  return Launch(
      "PoolInputGradient", stream, BlocksFor(size), kThreads,
      FitsInto32Bits(size) ? PoolInputGradientKernel<uint32_t> : PoolInputGradientKernel<size_t>,
      shape, size, places, output_gradient, input_gradient);
}

}  // namespace slipstream::cuda
