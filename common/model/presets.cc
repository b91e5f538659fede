#include "common/model/presets.h"

#include <cstddef>
#include <string>
#include <utility>
#include <variant>

namespace slipstream {
namespace {

constexpr uint32_t kClasses = 10;

PoolLayer Halve(PoolLayer::Kind kind, uint32_t kernel, bool ceil) {
  return {.kind = kind, .kernel = kernel, .stride = 2, .ceil = ceil};
}

ModelSpec Mlp() {
  return {.preset = "mlp",
          .input = {1, 28, 28},
          .layers = {FlattenLayer{}, DenseLayer{256}, ReluLayer{}, DenseLayer{128}, ReluLayer{},
                     DenseLayer{kClasses}}};
}

ModelSpec Lenet5() {
  const PoolLayer pool = Halve(PoolLayer::Kind::kMax, 2, false);
  return {
      .preset = "lenet5",
      .input = {1, 28, 28},
      .layers = {Conv2dLayer{.channels = 6, .kernel = 5, .padding = 2}, ReluLayer{}, pool,
                 Conv2dLayer{.channels = 16, .kernel = 5}, ReluLayer{}, pool, FlattenLayer{},
                 DenseLayer{120}, ReluLayer{}, DenseLayer{84}, ReluLayer{}, DenseLayer{kClasses}}};
}

ModelSpec CifarQuick() {
  const PoolLayer max = Halve(PoolLayer::Kind::kMax, 3, true);
  const PoolLayer average = Halve(PoolLayer::Kind::kAverage, 3, true);
  const Conv2dLayer narrow = {.channels = 32, .kernel = 5, .padding = 2};
  const Conv2dLayer wide = {.channels = 64, .kernel = 5, .padding = 2};
  // The first block pools before its ReLU, as the original does; the others after.
  return {.preset = "cifar_quick",
          .input = {3, 32, 32},
          .layers = {narrow, max, ReluLayer{}, narrow, ReluLayer{}, average, wide, ReluLayer{},
                     average, FlattenLayer{}, DenseLayer{kClasses}}};
}

/// cuda-convnet's net for CIFAR-10 with response normalisation within maps (layers-18pct), as the
/// authors of Rudra configured it (Gupta, Zhang, Wang, arXiv 1509.04210).
ModelSpec RudraCifar() {
  ModelSpec model = CifarQuick();
  model.preset = "rudra_cifar";
  // Later places first: they stay as they are.
  for (const ptrdiff_t after_pool : {6, 3}) {
    model.layers.insert(model.layers.begin() + after_pool, LrnLayer{});
  }
  float deviation = 1e-4f;  // Of the first convolution.
  for (LayerSpec& layer : model.layers) {
    if (auto* conv = std::get_if<Conv2dLayer>(&layer)) {
      conv->init_normal = std::exchange(deviation, 0.01f);
    }
    if (auto* dense = std::get_if<DenseLayer>(&layer)) dense->init_normal = deviation;
  }
  return model;
}

/// Simonyan and Zisserman (arXiv 1409.1556): 3 × 3 convolutions in blocks that halve the image and
/// double the channels.
ModelSpec VggSmall() {
  ModelSpec model = {.preset = "vgg_small", .input = {3, 32, 32}, .layers = {}};
  for (const uint32_t channels : {64u, 128u, 256u}) {
    for (int i = 0; i < 2; ++i) {
      model.layers.emplace_back(Conv2dLayer{.channels = channels, .kernel = 3, .padding = 1});
      model.layers.emplace_back(ReluLayer{});
    }
    model.layers.emplace_back(Halve(PoolLayer::Kind::kMax, 2, false));
  }
  model.layers.insert(model.layers.end(), {FlattenLayer{}, DropoutLayer{}, DenseLayer{512},
                                           ReluLayer{}, DropoutLayer{}, DenseLayer{kClasses}});
  return model;
}

/// Krizhevsky, Sutskever, Hinton (NIPS 2012), without groups and response normalisation. The last
/// pool leaves 7 × 7, with which the net has the 72 million parameters (289 MB) that Rudra was
/// measured with (Gupta, Zhang, Wang, arXiv 1509.04210).
ModelSpec AlexNet() {
  const PoolLayer pool = Halve(PoolLayer::Kind::kMax, 3, false);
  return {.preset = "alexnet",
          .input = {3, 224, 224},
          .layers = {Conv2dLayer{.channels = 96, .kernel = 11, .stride = 4, .padding = 2},
                     ReluLayer{},
                     pool,
                     Conv2dLayer{.channels = 256, .kernel = 5, .padding = 2},
                     ReluLayer{},
                     pool,
                     Conv2dLayer{.channels = 384, .kernel = 3, .padding = 1},
                     ReluLayer{},
                     Conv2dLayer{.channels = 384, .kernel = 3, .padding = 1},
                     ReluLayer{},
                     Conv2dLayer{.channels = 256, .kernel = 3, .padding = 1},
                     ReluLayer{},
                     Halve(PoolLayer::Kind::kMax, 2, true),
                     FlattenLayer{},
                     DropoutLayer{},
                     DenseLayer{4096},
                     ReluLayer{},
                     DropoutLayer{},
                     DenseLayer{4096},
                     ReluLayer{},
                     DenseLayer{kClasses}}};
}

}  // namespace

std::optional<ModelSpec> FindPreset(std::string_view name) {
  if (name == "mlp") return Mlp();
  if (name == "lenet5") return Lenet5();
  if (name == "cifar_quick") return CifarQuick();
  if (name == "rudra_cifar") return RudraCifar();
  if (name == "vgg_small") return VggSmall();
  if (name == "alexnet") return AlexNet();
  return std::nullopt;
}

std::vector<std::string_view> PresetNames() {
  return {"mlp", "lenet5", "cifar_quick", "rudra_cifar", "vgg_small", "alexnet"};
}

}  // namespace slipstream
