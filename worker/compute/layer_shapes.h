#ifndef SLIPSTREAM_WORKER_COMPUTE_LAYER_SHAPES_H_
#define SLIPSTREAM_WORKER_COMPUTE_LAYER_SHAPES_H_

#include <cstddef>
#include <cstdint>

#include "common/layout/tensor_layout.h"
#include "common/model/model_spec.h"
#include "common/model/net_shapes.h"

namespace slipstream {

/// Layers together with the sizes and offsets that follow from their place in the net.

/// The positions at which a layer's parameters begin in the flat arena; a bias follows its weight.
struct LayerParameters {
  size_t weight = 0;
  size_t bias = 0;
  size_t end = 0;

  ParameterRange range() const { return {weight, end}; }
};

struct DenseShape {
  uint32_t inputs = 0;
  uint32_t units = 0;
};

struct Conv2dShape {
  ExampleShape input;
  ExampleShape output;
  uint32_t kernel = 0;
  uint32_t stride = 1;
  uint32_t padding = 0;

  size_t kernel_elements() const { return size_t{kernel} * kernel; }
  size_t weights() const { return size_t{output.channels} * input.channels * kernel_elements(); }
};

struct PoolShape {
  PoolLayer::Kind kind = PoolLayer::Kind::kMax;
  ExampleShape input;
  ExampleShape output;
  uint32_t kernel = 0;
  uint32_t stride = 0;
};

struct LrnShape {
  ExampleShape image;
  LrnLayer::Region region = LrnLayer::Region::kWithin;
  uint32_t size = 1;
  float alpha = 0;
  float beta = 0;

  /// α/N, the factor of a window's squares.
  float share() const {
    const float side = static_cast<float>(size);
    return alpha / (region == LrnLayer::Region::kWithin ? side * side : side);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_LAYER_SHAPES_H_
