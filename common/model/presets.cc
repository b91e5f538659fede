#include "common/model/presets.h"

#include <string>

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

}  // namespace

std::optional<ModelSpec> FindPreset(std::string_view name) {
  if (name == "mlp") return Mlp();
  if (name == "lenet5") return Lenet5();
  if (name == "cifar_quick") return CifarQuick();
  return std::nullopt;
}

std::vector<std::string_view> PresetNames() { return {"mlp", "lenet5", "cifar_quick"}; }

}  // namespace slipstream
