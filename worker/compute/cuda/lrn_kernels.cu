#include <cstdint>

#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/cuda/lrn_kernels.h"
#include "worker/compute/cuda/lrn_math.h"

namespace slipstream::cuda {
namespace {

template <typename Index>
__global__ void LrnForwardKernel(LrnWindows windows, size_t size, const float* input, float* output,
                                 float* scales) {
  ForEach(size,
          [=](size_t i) { output[i] = LrnOutput(windows, input, scales, static_cast<Index>(i)); });
}

template <typename Index>
__global__ void LrnInputGradientKernel(LrnWindows windows, size_t size, LrnPass pass,
                                       float* input_gradient) {
  ForEach(size, [=](size_t i) {
    input_gradient[i] = LrnInputGradient(windows, pass.input, pass.output, pass.scales,
                                         pass.output_gradient, static_cast<Index>(i));
  });
}

}  // namespace

absl::Status LrnForward(cudaStream_t stream, const LrnShape& shape, uint32_t count,
                        const float* input, float* output, float* scales) {
  const size_t size = count * shape.image.elements();
  return Launch("LrnForward", stream, BlocksFor(size), kThreads,
                IsNarrow(size) ? LrnForwardKernel<uint32_t> : LrnForwardKernel<size_t>,
                LrnWindows(shape), size, input, output, scales);
}

absl::Status LrnInputGradient(cudaStream_t stream, const LrnShape& shape, uint32_t count,
                              const LrnPass& pass, float* input_gradient) {
  const size_t size = count * shape.image.elements();
  return Launch("LrnInputGradient", stream, BlocksFor(size), kThreads,
                IsNarrow(size) ? LrnInputGradientKernel<uint32_t> : LrnInputGradientKernel<size_t>,
                LrnWindows(shape), size, pass, input_gradient);
}

}  // namespace slipstream::cuda
