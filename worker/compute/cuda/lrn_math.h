#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_LRN_MATH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_LRN_MATH_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "worker/compute/cuda/host_device.h"
#include "worker/compute/cuda/pool_math.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// The computation of lrn_kernels.h for one element; twins of plain_lrn.h, which sums windows in
/// another order. Images are [count, channels, height, width], row-major.

/// Converts an index to its window, the values that a normalisation sums over.
class LrnWindows {
 public:
  explicit LrnWindows(const LrnShape& shape)
      : shape_(shape),
        share_(shape.share()),
        planes_(shape.image),
        channels_(shape.image.channels) {}

  /// α/N, the factor of a window's squares.
  PS_HOST_DEVICE float share() const { return share_; }

  PS_HOST_DEVICE float beta() const { return shape_.beta; }

  /// Returns the sum of value(place) over the places of the window of `index`, in their order.
  template <typename Index, typename Value>
  PS_HOST_DEVICE float Sum(Index index, Value value) const {
    const PlanePoint point = planes_.PointAt(index);
    const ExampleShape& image = shape_.image;
    const uint32_t reach = shape_.size / 2;
    const size_t plane_size = size_t{image.height} * image.width;
    float sum = 0;
    if (shape_.region == LrnLayer::Region::kAcross) {
      const size_t example = channels_.Of(static_cast<Index>(point.plane));
      const auto channel = static_cast<uint32_t>(point.plane - example * image.channels);
      const size_t first = index - channel * plane_size;
      for (uint32_t c = Low(channel, reach); c < High(channel, reach, image.channels); ++c) {
        sum += value(first + c * plane_size);
      }
      return sum;
    }
    const size_t plane = point.plane * plane_size;
    for (uint32_t y = Low(point.y, reach); y < High(point.y, reach, image.height); ++y) {
      for (uint32_t x = Low(point.x, reach); x < High(point.x, reach, image.width); ++x) {
        sum += value(plane + size_t{y} * image.width + x);
      }
    }
    return sum;
  }

 private:
  PS_HOST_DEVICE static uint32_t Low(uint32_t middle, uint32_t reach) {
    return middle < reach ? 0 : middle - reach;
  }
  PS_HOST_DEVICE static uint32_t High(uint32_t middle, uint32_t reach, uint32_t length) {
    return length - middle <= reach ? length : middle + reach + 1;
  }

  LrnShape shape_;
  float share_;
  PlaneGrid planes_;
  Divisor channels_;
};

/// Returns scale^−β.
PS_HOST_DEVICE inline float LrnFactor(float beta, float scale) {
  return beta == 0.75f ? 1 / std::sqrt(scale * std::sqrt(scale)) : std::pow(scale, -beta);
}

/// Returns the output at `index`. Writes 1 + α/N Σ x² to `scales`, unless that is null.
template <typename Index>
PS_HOST_DEVICE inline float LrnOutput(const LrnWindows& windows, const float* input, float* scales,
                                      Index index) {
  const float squares =
      windows.Sum(index, [input](size_t place) { return input[place] * input[place]; });
  const float scale = 1 + windows.share() * squares;
  if (scales != nullptr) scales[index] = scale;
  return input[index] * LrnFactor(windows.beta(), scale);
}

/// Returns the gradient of the input at `index`, gathered from the outputs that it is part of.
/// `output` and `scales` are those of LrnOutput.
template <typename Index>
PS_HOST_DEVICE inline float LrnInputGradient(const LrnWindows& windows, const float* input,
                                             const float* output, const float* scales,
                                             const float* output_gradient, Index index) {
  const float sum = windows.Sum(
      index, [=](size_t place) { return output_gradient[place] * output[place] / scales[place]; });
  return output_gradient[index] * LrnFactor(windows.beta(), scales[index]) -
         2 * windows.share() * windows.beta() * input[index] * sum;
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_LRN_MATH_H_
