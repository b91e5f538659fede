#ifndef SLIPSTREAM_COMMON_MODEL_NET_SHAPES_H_
#define SLIPSTREAM_COMMON_MODEL_NET_SHAPES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "common/model/model_spec.h"

namespace slipstream {

/// Channels, height, width of one example between two layers; a flat vector is {n, 1, 1}.
struct ExampleShape {
  uint32_t channels = 0;
  uint32_t height = 1;
  uint32_t width = 1;

  size_t elements() const { return size_t{channels} * height * width; }
  friend bool operator==(const ExampleShape&, const ExampleShape&) = default;
};

/// Returns the shape in the form "1×28×28".
std::string ToText(const ExampleShape& shape);

/// An error in a net, with its layer; `layer` is −1 for the input itself.
struct ShapeError {
  int layer = -1;
  std::string message;

  /// Returns "layer 2: …", or the message alone if it is about the input.
  std::string Text() const;
};

/// The shapes of a net: shapes[0] is the input, shapes[i + 1] the output of layer i.
struct NetShapes {
  std::vector<ExampleShape> shapes;

  /// The parameters in layer order, each layer's weight before its bias, named
  /// `<layer index>.weight` and `<layer index>.bias`.
  TensorLayout layout;

  /// ModelSpec's init_normal by the name of the weight, where a layer has it.
  std::map<std::string, float> normal_weights;

  const ExampleShape& input() const { return shapes.front(); }

  /// Returns the values of the last layer for one example: scores of classes, or predictions that
  /// are compared with targets.
  uint32_t outputs() const { return shapes.back().channels; }
};

/// Follows the shapes from the input to the last layer. A dense layer takes only a flat vector, a
/// convolution or pool only an image; the last output must be a flat vector, of at least 2 classes
/// where the loss is cross-entropy.
std::variant<NetShapes, ShapeError> InferShapes(const ModelSpec& model);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MODEL_NET_SHAPES_H_
