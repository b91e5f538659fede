#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_PARAMETERS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_PARAMETERS_H_

#include <cstddef>

#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// The positions of a layer's parameters in the arenas of the device.
struct DeviceParameters {
  size_t weight = 0;
  size_t bias = 0;

  static DeviceParameters Of(const LayerParameters& layer, const ArenaMap& map) {
    return {map.OnDevice(layer.weight), map.OnDevice(layer.bias)};
  }
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_PARAMETERS_H_
