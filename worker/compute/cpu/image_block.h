#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_IMAGE_BLOCK_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_IMAGE_BLOCK_H_

#include <variant>

#include "worker/compute/activation.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream {

/// A layer on images, together with the activation that follows it.

struct ConvBlock {
  Conv2dShape shape;
  LayerParameters parameters;
  Activation activation = Activation::kNone;
};

struct PoolBlock {
  PoolShape shape;
  Activation activation = Activation::kNone;
};

using ImageBlock = std::variant<ConvBlock, PoolBlock>;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_IMAGE_BLOCK_H_
