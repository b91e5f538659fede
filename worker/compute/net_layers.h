#ifndef SLIPSTREAM_WORKER_COMPUTE_NET_LAYERS_H_
#define SLIPSTREAM_WORKER_COMPUTE_NET_LAYERS_H_

#include <cstddef>

#include "common/layout/tensor_layout.h"
#include "common/model/model_spec.h"
#include "common/model/net_shapes.h"
#include "worker/compute/activation.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream {

/// One net in the form in which a device that prepares a plan reads it: each layer with the sizes
/// and offsets that follow from its place. Layers are numbered as in ModelSpec::layers.
///
/// Borrows the model and its shapes. Thread-safe: const.
class NetLayers {
 public:
  /// REQUIRES: `shapes` is InferShapes(model).
  NetLayers(const ModelSpec& model, const NetShapes& shapes) : model_(model), shapes_(shapes) {}

  size_t size() const { return model_.layers.size(); }
  const LayerSpec& at(size_t layer) const { return model_.layers[layer]; }
  const ExampleShape& input(size_t layer) const { return shapes_.shapes[layer]; }
  const ExampleShape& output(size_t layer) const { return shapes_.shapes[layer + 1]; }

  /// The activation at this position; kNone if the layer is none, or past the last layer.
  Activation ActivationAt(size_t layer) const;

  // REQUIRES, for each: the layer is of that kind.
  DenseShape DenseAt(size_t layer) const;
  Conv2dShape Conv2dAt(size_t layer) const;
  PoolShape PoolAt(size_t layer) const;
  LrnShape LrnAt(size_t layer) const;

  /// REQUIRES: the layer has parameters.
  LayerParameters ParametersAt(size_t layer) const;

  /// The range of the parameters of the layers [first, end), which are adjacent in the arena, too;
  /// empty if they have none.
  ParameterRange ParametersOf(size_t first, size_t end) const;

 private:
  const ModelSpec& model_;
  const NetShapes& shapes_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_NET_LAYERS_H_
