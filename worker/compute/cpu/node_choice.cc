#include "worker/compute/cpu/node_choice.h"

#include <utility>
#include <variant>

#include "worker/compute/cpu/bf16_dense_node.h"
#include "worker/compute/cpu/dense_node.h"
#include "worker/compute/cpu/image_block.h"
#include "worker/compute/cpu/innermost_kernels.h"
#include "worker/compute/cpu/innermost_section.h"
#include "worker/compute/cpu/onednn_section.h"
#include "worker/compute/cpu/plain_nodes.h"
#include "worker/compute/net_layers.h"

namespace slipstream {
namespace {

/// Makes the nodes of a net from its first layer to its last.
class Chooser {
 public:
  Chooser(const ModelSpec& model, const NetShapes& shapes, const PlanOptions& options,
          CpuKernels kernels)
      : layers_(model, shapes), options_(options), kernels_(kernels) {}

  std::vector<ChosenNode> Choose() {
    while (layer_ < layers_.size()) std::visit(*this, layers_.at(layer_));
    return std::move(nodes_);
  }

  void operator()(const DenseLayer&) {
    const DenseShape shape = layers_.DenseAt(layer_);
    const LayerParameters parameters = layers_.ParametersAt(layer_);
    if (kernels_ == CpuKernels::kPlain) {
      Add(std::make_unique<PlainDenseNode>(shape, parameters), 1);
      return;
    }
    const Activation activation = layers_.ActivationAt(layer_ + 1);
    const size_t layers = activation == Activation::kNone ? 1 : 2;
    if (options_.precision == Precision::kFp32) {
      Add(std::make_unique<DenseNode>(shape, parameters, activation), layers);
      return;
    }
    const bool wants_input_gradient = !nodes_.empty();
    Add(std::make_unique<Bf16DenseNode>(shape, parameters, activation, options_.trains,
                                        wants_input_gradient),
        layers);
  }

  void operator()(const Conv2dLayer&) {
    if (kernels_ != CpuKernels::kPlain) {
      AddSection(ImageBlocks());
      return;
    }
    const ConvBlock conv = ConvAt(layer_);
    Add(std::make_unique<PlainConv2dNode>(conv.shape, conv.parameters), 1);
  }

  void operator()(const PoolLayer&) {
    Add(std::make_unique<PlainPoolNode>(layers_.PoolAt(layer_)), 1);
  }

  void operator()(const LrnLayer&) { Add(std::make_unique<LrnNode>(layers_.LrnAt(layer_)), 1); }

  void operator()(const ReluLayer&) { AddActivation(Activation::kRelu); }
  void operator()(const TanhLayer&) { AddActivation(Activation::kTanh); }

  void operator()(const DropoutLayer& layer) {
    Add(std::make_unique<DropoutNode>(options_.seed, static_cast<uint32_t>(layer_), layer.rate,
                                      layers_.input(layer_).elements()),
        1);
  }

  // Flattening does nothing: plain images are flat vectors already.
  void operator()(const FlattenLayer&) { ++layer_; }

 private:
  ConvBlock ConvAt(size_t layer) const {
    return {layers_.Conv2dAt(layer), layers_.ParametersAt(layer), Activation::kNone};
  }

  // Returns the convolutions and pools from the current layer on, with their activations.
  std::vector<ImageBlock> ImageBlocks() const {
    std::vector<ImageBlock> blocks;
    for (size_t layer = layer_; layer < layers_.size();) {
      const Activation activation = layers_.ActivationAt(layer + 1);
      if (std::holds_alternative<Conv2dLayer>(layers_.at(layer))) {
        ConvBlock conv = ConvAt(layer);
        conv.activation = activation;
        blocks.push_back(conv);
      } else if (std::holds_alternative<PoolLayer>(layers_.at(layer))) {
        blocks.push_back(PoolBlock{layers_.PoolAt(layer), activation});
      } else {
        break;
      }
      layer += activation == Activation::kNone ? 1 : 2;
    }
    return blocks;
  }

  static size_t LayersOf(const std::vector<ImageBlock>& blocks) {
    size_t layers = blocks.size();
    for (const ImageBlock& block : blocks) {
      layers += std::visit([](const auto& b) { return b.activation != Activation::kNone; }, block);
    }
    return layers;
  }

  void AddSection(const std::vector<ImageBlock>& blocks) {
    const size_t layers = LayersOf(blocks);
    if (kernels_ == CpuKernels::kFastest) {
      const auto available = AvailableInnermostKernels();
      if (!available.empty()) {
        auto section = InnermostSection::TryMake(blocks, *available.front(), options_.trains);
        if (section != nullptr) {
          Add(std::move(section), layers);
          return;
        }
      }
    }
    OneDnnProgram::Options options = {.trains = options_.trains,
                                      .wants_input_gradient = !nodes_.empty()};
    if (options_.precision == Precision::kBf16) {
      options.operand_type = dnnl::memory::data_type::bf16;
    }
    Add(std::make_unique<OneDnnSection>(blocks, options), layers);
  }

  void AddActivation(Activation activation) {
    Add(std::make_unique<PlainActivationNode>(activation, layers_.input(layer_).elements()), 1);
  }

  // Adds `node`, which covers `layers` layers from the current one on.
  void Add(std::unique_ptr<Node> node, size_t layers) {
    const size_t end = layer_ + layers;
    nodes_.push_back(
        {std::move(node), layers_.output(end - 1).elements(), layers_.ParametersOf(layer_, end)});
    layer_ = end;
  }

  const NetLayers layers_;
  const PlanOptions& options_;
  const CpuKernels kernels_;

  size_t layer_ = 0;  // The first layer that has no node yet.
  std::vector<ChosenNode> nodes_;
};

}  // namespace

std::vector<ChosenNode> ChooseNodes(const ModelSpec& model, const NetShapes& shapes,
                                    const PlanOptions& options, CpuKernels kernels) {
  return Chooser(model, shapes, options, kernels).Choose();
}

}  // namespace slipstream
