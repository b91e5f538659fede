#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_MATH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_MATH_H_

#include <cstddef>
#include <cstdint>

#include "worker/compute/cuda/host_device.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// One element of what pool_kernels.h computes; twins of plain_image.h. Images are
/// [count, channels, height, width], row-major.

/// The part of an image plane that one output reads; half-open.
struct PoolWindow {
  uint32_t top = 0, bottom = 0, left = 0, right = 0;
};

PS_HOST_DEVICE inline PoolWindow WindowOf(const PoolShape& shape, uint32_t y, uint32_t x) {
  PoolWindow window;
  window.top = y * shape.stride;
  window.left = x * shape.stride;
  const uint32_t bottom = window.top + shape.kernel;
  const uint32_t right = window.left + shape.kernel;
  window.bottom = bottom < shape.input.height ? bottom : shape.input.height;
  window.right = right < shape.input.width ? right : shape.input.width;
  return window;
}

/// Where the first of the largest values lies.
PS_HOST_DEVICE inline uint32_t LargestIn(const PoolWindow& window, uint32_t width,
                                         const float* plane) {
  uint32_t largest = window.top * width + window.left;
  for (uint32_t y = window.top; y < window.bottom; ++y) {
    for (uint32_t x = window.left; x < window.right; ++x) {
      const uint32_t here = y * width + x;
      if (plane[here] > plane[largest]) largest = here;
    }
  }
  return largest;
}

PS_HOST_DEVICE inline float ElementsOf(const PoolWindow& window) {
  return static_cast<float>((window.bottom - window.top) * (window.right - window.left));
}

/// The output at `index` of all images' outputs.
PS_HOST_DEVICE inline float Pooled(const PoolShape& shape, const float* input, size_t index) {
  const auto x = static_cast<uint32_t>(index % shape.output.width);
  const size_t row = index / shape.output.width;
  const auto y = static_cast<uint32_t>(row % shape.output.height);
  const size_t image = row / shape.output.height;
  const float* plane = input + image * shape.input.height * shape.input.width;
  const PoolWindow window = WindowOf(shape, y, x);
  if (shape.kind == PoolLayer::Kind::kMax)
    return plane[LargestIn(window, shape.input.width, plane)];
  float sum = 0;
  for (uint32_t in_y = window.top; in_y < window.bottom; ++in_y) {
    for (uint32_t in_x = window.left; in_x < window.right; ++in_x) {
      sum += plane[in_y * shape.input.width + in_x];
    }
  }
  return sum / ElementsOf(window);
}

/// The gradient of the input at `index` of all images' inputs: gathered from the windows that read
/// it, in their order, so that no two threads write one value and sums are those of the CPU.
PS_HOST_DEVICE inline float PoolInputGradient(const PoolShape& shape, const float* input,
                                              const float* output_gradient, size_t index) {
  const auto x = static_cast<uint32_t>(index % shape.input.width);
  const size_t row = index / shape.input.width;
  const auto y = static_cast<uint32_t>(row % shape.input.height);
  const size_t image = row / shape.input.height;
  const float* plane = input + image * shape.input.height * shape.input.width;
  const float* gradients = output_gradient + image * shape.output.height * shape.output.width;
  const uint32_t here = y * shape.input.width + x;
  const uint32_t first_y = y < shape.kernel ? 0 : (y - shape.kernel) / shape.stride + 1;
  const uint32_t first_x = x < shape.kernel ? 0 : (x - shape.kernel) / shape.stride + 1;
  float sum = 0;
  for (uint32_t out_y = first_y; out_y < shape.output.height && out_y * shape.stride <= y;
       ++out_y) {
    for (uint32_t out_x = first_x; out_x < shape.output.width && out_x * shape.stride <= x;
         ++out_x) {
      const PoolWindow window = WindowOf(shape, out_y, out_x);
      const float gradient = gradients[out_y * shape.output.width + out_x];
      if (shape.kind == PoolLayer::Kind::kMax) {
        if (LargestIn(window, shape.input.width, plane) == here) sum += gradient;
      } else {
        sum += gradient / ElementsOf(window);
      }
    }
  }
  return sum;
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_MATH_H_
