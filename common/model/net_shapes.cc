#include "common/model/net_shapes.h"

#include <cmath>
#include <optional>
#include <utility>

namespace slipstream {
namespace {

// These bounds keep every product far below overflow; no net of this kind comes near them.
constexpr uint32_t kDimensionMax = 1u << 24;
constexpr size_t kElementsMax = size_t{1} << 28;
constexpr size_t kLayersMax = 1024;
constexpr uint32_t kLrnSizeMax = 255;

using ShapeOrError = std::variant<ExampleShape, std::string>;

bool IsFlat(const ExampleShape& shape) { return shape.height == 1 && shape.width == 1; }

/// Returns how many windows of `kernel` fit along `length`, which is not shorter than `kernel`.
uint32_t Windows(uint32_t length, uint32_t kernel, uint32_t stride, bool ceil) {
  uint32_t count = (length - kernel) / stride + 1;
  // A last partial window counts only if it starts inside the input.
  if (ceil && (length - kernel) % stride != 0 && uint64_t{count} * stride < length) ++count;
  return count;
}

/// Returns why windows of `kernel` and `stride` cannot slide over an input of `shape`, if so.
std::optional<std::string> WindowError(const ExampleShape& shape, uint32_t kernel, uint32_t stride,
                                       uint32_t padding) {
  if (kernel == 0 || kernel > kDimensionMax) return "kernel must be at least 1";
  if (stride == 0 || stride > kDimensionMax) return "stride must be at least 1";
  if (padding >= kernel) return "padding must be smaller than the kernel";
  if (kernel > shape.height + 2 * padding || kernel > shape.width + 2 * padding) {
    return "a kernel of " + std::to_string(kernel) + "×" + std::to_string(kernel) +
           " does not fit into the layer's input of " + ToText(shape) +
           (padding > 0 ? " with a padding of " + std::to_string(padding) : "");
  }
  return std::nullopt;
}

/// Computes the output shape of each kind of layer for `input`, and appends its parameters.
struct FollowLayer {
  const ExampleShape& input;
  const std::string& prefix;
  NetShapes& net;

  ShapeOrError operator()(const DenseLayer& layer) const {
    if (!IsFlat(input)) {
      return "dense takes a flat vector, but its input is " + ToText(input) +
             "; put flatten before it";
    }
    if (layer.units == 0 || layer.units > kDimensionMax) return "units must be in [1, 16777216]";
    return WithParameters({layer.units, 1, 1}, {layer.units, input.channels}, layer.init_normal);
  }

  ShapeOrError operator()(const Conv2dLayer& layer) const {
    if (layer.channels == 0 || layer.channels > kDimensionMax) {
      return "channels must be in [1, 16777216]";
    }
    if (auto error = WindowError(input, layer.kernel, layer.stride, layer.padding)) return *error;
    const uint32_t height = input.height + 2 * layer.padding;
    const uint32_t width = input.width + 2 * layer.padding;
    return WithParameters({layer.channels, Windows(height, layer.kernel, layer.stride, false),
                           Windows(width, layer.kernel, layer.stride, false)},
                          {layer.channels, input.channels, layer.kernel, layer.kernel},
                          layer.init_normal);
  }

  ShapeOrError operator()(const PoolLayer& layer) const {
    if (auto error = WindowError(input, layer.kernel, layer.stride, 0)) return *error;
    return ExampleShape{input.channels,
                        Windows(input.height, layer.kernel, layer.stride, layer.ceil),
                        Windows(input.width, layer.kernel, layer.stride, layer.ceil)};
  }

  ShapeOrError operator()(const LrnLayer& layer) const {
    if (layer.size % 2 == 0 || layer.size > kLrnSizeMax) return "size must be odd and at most 255";
    if (!(layer.alpha >= 0 && std::isfinite(layer.alpha))) return "alpha must be at least 0";
    if (!(layer.beta >= 0 && std::isfinite(layer.beta))) return "beta must be at least 0";
    return input;
  }

  ShapeOrError operator()(const ReluLayer&) const { return input; }
  ShapeOrError operator()(const TanhLayer&) const { return input; }

  ShapeOrError operator()(const DropoutLayer& layer) const {
    if (!(layer.rate >= 0 && layer.rate < 1)) return "rate must be in [0, 1)";
    return input;
  }

  ShapeOrError operator()(const FlattenLayer&) const {
    return ExampleShape{static_cast<uint32_t>(input.elements()), 1, 1};
  }

  ShapeOrError WithParameters(ExampleShape output, std::vector<uint64_t> weight,
                              std::optional<float> init_normal) const {
    const uint64_t outputs = weight.front();
    if (init_normal) {
      if (!(*init_normal >= 0 && std::isfinite(*init_normal))) {
        return "init_normal must be at least 0";
      }
      net.normal_weights.emplace(prefix + ".weight", *init_normal);
    }
    absl::Status added = net.layout.Append(prefix + ".weight", std::move(weight));
    if (added.ok()) added = net.layout.Append(prefix + ".bias", {outputs});
    if (!added.ok()) return std::string(added.message().data(), added.message().size());
    return output;
  }
};

std::optional<std::string> InputError(const ModelSpec& model) {
  if (model.input.size() != 3) return "input must be three numbers: channels, height, width";
  size_t elements = 1;
  for (uint32_t dimension : model.input) {
    if (dimension == 0 || dimension > kDimensionMax) return "input sizes must be at least 1";
    elements *= dimension;
    if (elements > kElementsMax) return "the input has more than 2^28 elements";
  }
  if (model.layers.empty()) return "the net has no layers";
  if (model.layers.size() > kLayersMax) {
    return "the net has more than " + std::to_string(kLayersMax) + " layers";
  }
  return std::nullopt;
}

/// Returns true if the product of the three would pass kElementsMax; each is below 2^26.
bool IsTooLarge(const ExampleShape& shape) {
  const size_t plane = size_t{shape.height} * shape.width;
  return plane > kElementsMax || shape.channels > kElementsMax / plane;
}

}  // namespace

std::string ShapeError::Text() const {
  return layer < 0 ? message : "layer " + std::to_string(layer) + ": " + message;
}

std::string ToText(const ExampleShape& shape) {
  return std::to_string(shape.channels) + "×" + std::to_string(shape.height) + "×" +
         std::to_string(shape.width);
}

std::variant<NetShapes, ShapeError> InferShapes(const ModelSpec& model) {
  if (auto error = InputError(model)) return ShapeError{-1, *error};

  NetShapes net;
  net.shapes.push_back({model.input[0], model.input[1], model.input[2]});
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const int layer = static_cast<int>(i);
    const ExampleShape input = net.shapes.back();
    ShapeOrError output = std::visit(FollowLayer{input, std::to_string(i), net}, model.layers[i]);
    if (auto* message = std::get_if<std::string>(&output)) return ShapeError{layer, *message};
    const ExampleShape& shape = std::get<ExampleShape>(output);
    if (IsTooLarge(shape)) return ShapeError{layer, "the output has more than 2^28 elements"};
    net.shapes.push_back(shape);
  }

  const int last = static_cast<int>(model.layers.size()) - 1;
  const ExampleShape& output = net.shapes.back();
  if (!IsFlat(output)) {
    return ShapeError{last, "the net must end in a flat vector, not " + ToText(output)};
  }
  if (model.loss == ModelSpec::Loss::kCrossEntropy && output.channels < 2) {
    return ShapeError{last, "the net must end in at least 2 classes for cross_entropy"};
  }
  return net;
}

}  // namespace slipstream
