#include "worker/compute/cuda/cuda_nodes.h"

#include <utility>
#include <variant>

#include "common/base/check.h"
#include "worker/compute/cuda/cuda_conv_node.h"
#include "worker/compute/cuda/cuda_dense_node.h"
#include "worker/compute/cuda/cuda_plain_nodes.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/device_parameters.h"

namespace slipstream::cuda {
namespace {

/// Makes the nodes of a net from its first layer to its last.
class Maker {
 public:
  Maker(const DeviceContext& context, const NetLayers& layers, const ArenaMap& map,
        const PlanOptions& options)
      : context_(context), layers_(layers), map_(map), options_(options) {}

  absl::StatusOr<std::vector<PlacedNode>> Make() {
    while (layer_ < layers_.size()) PS_RETURN_IF_ERROR(std::visit(*this, layers_.at(layer_)));
    return std::move(nodes_);
  }

  absl::Status operator()(const DenseLayer&) {
    return AddFused(CudaDenseNode::New(context_, {.shape = layers_.DenseAt(layer_),
                                                  .parameters = ParametersHere(),
                                                  .activation = ActivationNext(),
                                                  .precision = options_.precision,
                                                  .batch_size_max = options_.batch_size_max,
                                                  .trains = options_.trains,
                                                  .wants_input_gradient = has_parameters_}));
  }

  absl::Status operator()(const Conv2dLayer&) {
    return AddFused(CudaConvNode::New(context_, {.shape = layers_.Conv2dAt(layer_),
                                                 .parameters = ParametersHere(),
                                                 .activation = ActivationNext(),
                                                 .precision = options_.precision,
                                                 .batch_size_max = options_.batch_size_max,
                                                 .deterministic = options_.deterministic,
                                                 .trains = options_.trains,
                                                 .wants_input_gradient = has_parameters_}));
  }

  absl::Status operator()(const PoolLayer&) {
    absl::StatusOr<std::unique_ptr<CudaNode>> node = CudaPoolNode::New(
        context_, layers_.PoolAt(layer_), options_.batch_size_max, options_.trains);
    return node.ok() ? Add(*std::move(node), 1) : node.status();
  }

  absl::Status operator()(const LrnLayer&) {
    absl::StatusOr<std::unique_ptr<CudaNode>> node =
        CudaLrnNode::New(context_, layers_.LrnAt(layer_), options_.batch_size_max, options_.trains);
    return node.ok() ? Add(*std::move(node), 1) : node.status();
  }

  absl::Status operator()(const ReluLayer&) { return AddActivation(); }
  absl::Status operator()(const TanhLayer&) { return AddActivation(); }

  absl::Status operator()(const DropoutLayer& layer) {
    const size_t elements = layers_.input(layer_).elements();
    PS_CHECK(options_.batch_size_max * elements / DropoutDraws::kBlockElements <
             (uint64_t{1} << DropoutDraws::kBlockBits));
    const DropoutDraws draws(options_.seed, static_cast<uint32_t>(layer_), layer.rate);
    return Add(std::make_unique<CudaDropoutNode>(context_, draws, elements), 1);
  }

  // Flattening does nothing: plain images are flat vectors already.
  absl::Status operator()(const FlattenLayer&) {
    ++layer_;
    return absl::OkStatus();
  }

 private:
  DeviceParameters ParametersHere() const {
    return DeviceParameters::Of(layers_.ParametersAt(layer_), map_);
  }

  Activation ActivationNext() const { return layers_.ActivationAt(layer_ + 1); }

  absl::Status AddActivation() {
    return Add(std::make_unique<CudaActivationNode>(context_, layers_.ActivationAt(layer_),
                                                    layers_.input(layer_).elements()),
               1);
  }

  // Adds the node of the current layer and of the activation that follows it, if there is one.
  absl::Status AddFused(absl::StatusOr<std::unique_ptr<CudaNode>> node) {
    if (!node.ok()) return node.status();
    return Add(*std::move(node), ActivationNext() == Activation::kNone ? 1 : 2);
  }

  // Adds `node`, which covers `layers` layers from the current one on.
  absl::Status Add(std::unique_ptr<CudaNode> node, size_t layers) {
    const size_t end = layer_ + layers;
    nodes_.push_back(
        {std::move(node), layers_.output(end - 1).elements(), layers_.ParametersOf(layer_, end)});
    layer_ = end;
    has_parameters_ |= nodes_.back().parameters.size() > 0;
    return absl::OkStatus();
  }

  const DeviceContext& context_;
  const NetLayers& layers_;
  const ArenaMap& map_;
  const PlanOptions& options_;

  size_t layer_ = 0;             // The first layer that has no node yet.
  bool has_parameters_ = false;  // Whether any node so far has parameters.
  std::vector<PlacedNode> nodes_;
};

}  // namespace

ArenaMap MapOf(const NetLayers& layers) {
  ArenaMap map;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers.ParametersOf(layer, layer + 1).size() == 0) continue;
    const LayerParameters parameters = layers.ParametersAt(layer);
    map.Append({parameters.weight, parameters.bias});
    map.Append({parameters.bias, parameters.end});
  }
  return map;
}

absl::StatusOr<std::vector<PlacedNode>> MakeNodes(const DeviceContext& context,
                                                  const NetLayers& layers, const ArenaMap& map,
                                                  const PlanOptions& options) {
  return Maker(context, layers, map, options).Make();
}

}  // namespace slipstream::cuda
