#include "worker/compute/cpu/node_choice.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "worker/compute/cpu/bf16_dense_node.h"
#include "worker/compute/cpu/dense_node.h"
#include "worker/compute/cpu/image_block.h"
#include "worker/compute/cpu/innermost_kernels.h"
#include "worker/compute/cpu/innermost_section.h"
#include "worker/compute/cpu/layer_shapes.h"
#include "worker/compute/cpu/onednn_section.h"
#include "worker/compute/cpu/plain_nodes.h"

namespace slipstream {
namespace {

LayerParameters ParametersOf(const TensorLayout& layout, size_t layer) {
  const std::string prefix = std::to_string(layer);
  const Tensor* weight = layout.Find(prefix + ".weight");
  const Tensor* bias = layout.Find(prefix + ".bias");
  PS_CHECK(weight != nullptr && bias != nullptr);
  PS_CHECK(bias->offset == weight->offset + weight->size());
  return {weight->offset, bias->offset, bias->offset + bias->size()};
}

/// Makes the nodes of a net from its first layer to its last.
class Chooser {
 public:
  Chooser(const ModelSpec& model, const NetShapes& shapes, const PlanOptions& options,
          CpuKernels kernels)
      : model_(model), shapes_(shapes), options_(options), kernels_(kernels) {}

  std::vector<ChosenNode> Choose() {
    while (layer_ < model_.layers.size()) std::visit(*this, model_.layers[layer_]);
    return std::move(nodes_);
  }

  void operator()(const DenseLayer& layer) {
    const DenseShape shape = {input().channels, layer.units};
    const LayerParameters parameters = ParametersOf(shapes_.layout, layer_);
    if (kernels_ == CpuKernels::kPlain) {
      Add(std::make_unique<PlainDenseNode>(shape, parameters), 1);
      return;
    }
    const Activation activation = ActivationAt(layer_ + 1);
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

  void operator()(const PoolLayer& layer) {
    Add(std::make_unique<PlainPoolNode>(PoolAt(layer_, layer)), 1);
  }

  void operator()(const ReluLayer&) { AddActivation(Activation::kRelu); }
  void operator()(const TanhLayer&) { AddActivation(Activation::kTanh); }

  void operator()(const DropoutLayer& layer) {
    Add(std::make_unique<DropoutNode>(options_.seed, static_cast<uint32_t>(layer_), layer.rate,
                                      input().elements()),
        1);
  }

  // Plain images are flat vectors already.
  void operator()(const FlattenLayer&) { ++layer_; }

 private:
  const ExampleShape& input() const { return shapes_.shapes[layer_]; }
  const ExampleShape& output() const { return shapes_.shapes[layer_ + 1]; }

  Activation ActivationAt(size_t layer) const {
    if (layer >= model_.layers.size()) return Activation::kNone;
    if (std::holds_alternative<ReluLayer>(model_.layers[layer])) return Activation::kRelu;
    if (std::holds_alternative<TanhLayer>(model_.layers[layer])) return Activation::kTanh;
    return Activation::kNone;
  }

  ConvBlock ConvAt(size_t layer) const {
    const auto& conv = std::get<Conv2dLayer>(model_.layers[layer]);
    const Conv2dShape shape = {shapes_.shapes[layer], shapes_.shapes[layer + 1], conv.kernel,
                               conv.stride, conv.padding};
    return {shape, ParametersOf(shapes_.layout, layer), Activation::kNone};
  }

  PoolShape PoolAt(size_t layer, const PoolLayer& pool) const {
    return {pool.kind, shapes_.shapes[layer], shapes_.shapes[layer + 1], pool.kernel, pool.stride};
  }

  // The convolutions and pools from the current layer on, with their activations.
  std::vector<ImageBlock> ImageBlocks() const {
    std::vector<ImageBlock> blocks;
    for (size_t layer = layer_; layer < model_.layers.size();) {
      const Activation activation = ActivationAt(layer + 1);
      if (std::holds_alternative<Conv2dLayer>(model_.layers[layer])) {
        ConvBlock conv = ConvAt(layer);
        conv.activation = activation;
        blocks.push_back(conv);
      } else if (const auto* pool = std::get_if<PoolLayer>(&model_.layers[layer])) {
        blocks.push_back(PoolBlock{PoolAt(layer, *pool), activation});
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
    Add(std::make_unique<PlainActivationNode>(activation, input().elements()), 1);
  }

  // `layers` that `node` covers begin with the current one.
  void Add(std::unique_ptr<Node> node, size_t layers) {
    const ParameterRange parameters = ParametersFrom(layer_, layer_ + layers);
    layer_ += layers;
    nodes_.push_back({std::move(node), input().elements(), parameters});
  }

  // Of the layers [first, end), which follow one another in the arena, too.
  ParameterRange ParametersFrom(size_t first, size_t end) const {
    std::optional<ParameterRange> all;
    for (size_t layer = first; layer < end; ++layer) {
      const bool has_parameters = std::holds_alternative<DenseLayer>(model_.layers[layer]) ||
                                  std::holds_alternative<Conv2dLayer>(model_.layers[layer]);
      if (!has_parameters) continue;
      const ParameterRange own = ParametersOf(shapes_.layout, layer).range();
      all = {all ? all->begin : own.begin, own.end};
    }
    return all.value_or(ParameterRange{});
  }

  const ModelSpec& model_;
  const NetShapes& shapes_;
  const PlanOptions& options_;
  const CpuKernels kernels_;

  size_t layer_ = 0;  // The first that has no node yet.
  std::vector<ChosenNode> nodes_;
};

}  // namespace

std::vector<ChosenNode> ChooseNodes(const ModelSpec& model, const NetShapes& shapes,
                                    const PlanOptions& options, CpuKernels kernels) {
  return Chooser(model, shapes, options, kernels).Choose();
}

}  // namespace slipstream
