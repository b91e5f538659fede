#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_MATH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_MATH_H_

#include <cstddef>
#include <cstdint>

#include "worker/compute/cuda/divisor.h"
#include "worker/compute/cuda/host_device.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// The computation of pool_kernels.h for one element; twins of plain_image.h. Images are [count,
/// channels, height, width], row-major.

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

/// A point in one of all images' planes.
struct PlanePoint {
  size_t plane = 0;
  uint32_t y = 0, x = 0;
};

/// Converts the index of a value to its point, in planes of one size.
class PlaneGrid {
 public:
  explicit PlaneGrid(const ExampleShape& shape) : height_(shape.height), width_(shape.width) {}

  /// Returns the point of the value at `index`, which is a uint32_t if it is below
  /// Divisor::kNarrowEnd.
  template <typename Index>
  PS_HOST_DEVICE PlanePoint PointAt(Index index) const {
    const Index row = width_.Of(index);
    const Index plane = height_.Of(row);
    return {static_cast<size_t>(plane), static_cast<uint32_t>(row - plane * height_.value()),
            static_cast<uint32_t>(index - row * width_.value())};
  }

 private:
  Divisor height_;
  Divisor width_;
};

/// Returns the position of the first maximum in its plane.
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

/// Returns the output at `index` of all images' outputs, whose grid is `outputs`. For a maximum
/// pool, writes the maximum's position to `places`, unless that is null.
template <typename Index>
PS_HOST_DEVICE inline float Pooled(const PoolShape& shape, const PlaneGrid& outputs,
                                   const float* input, uint32_t* places, Index index) {
  const PlanePoint point = outputs.PointAt(index);
  const float* plane = input + point.plane * shape.input.height * shape.input.width;
  const PoolWindow window = WindowOf(shape, point.y, point.x);
  if (shape.kind == PoolLayer::Kind::kMax) {
    const uint32_t largest = LargestIn(window, shape.input.width, plane);
    if (places != nullptr) places[index] = largest;
    return plane[largest];
  }
  float sum = 0;
  for (uint32_t in_y = window.top; in_y < window.bottom; ++in_y) {
    for (uint32_t in_x = window.left; in_x < window.right; ++in_x) {
      sum += plane[in_y * shape.input.width + in_x];
    }
  }
  return sum / ElementsOf(window);
}

/// Returns the gradient of the input at `index` of all images' inputs, whose grid is `inputs`. It
/// is gathered from the windows that read the input, in their order, so that no two threads write
/// one value and sums equal the CPU's. For a maximum pool, `places` holds the positions that Pooled
/// has written.
template <typename Index>
PS_HOST_DEVICE inline float PoolInputGradient(const PoolShape& shape, const PlaneGrid& inputs,
                                              const uint32_t* places, const float* output_gradient,
                                              Index index) {
  const auto [image, y, x] = inputs.PointAt(index);
  const size_t outputs = image * shape.output.height * shape.output.width;
  const uint32_t here = y * shape.input.width + x;
  const uint32_t first_y = y < shape.kernel ? 0 : (y - shape.kernel) / shape.stride + 1;
  const uint32_t first_x = x < shape.kernel ? 0 : (x - shape.kernel) / shape.stride + 1;
  float sum = 0;
  for (uint32_t out_y = first_y; out_y < shape.output.height && out_y * shape.stride <= y;
       ++out_y) {
    for (uint32_t out_x = first_x; out_x < shape.output.width && out_x * shape.stride <= x;
         ++out_x) {
      const size_t out = outputs + out_y * shape.output.width + out_x;
      if (shape.kind == PoolLayer::Kind::kMax) {
        if (places[out] == here) sum += output_gradient[out];
      } else {
        sum += output_gradient[out] / ElementsOf(WindowOf(shape, out_y, out_x));
      }
    }
  }
  return sum;
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_POOL_MATH_H_
