#include "worker/training/net_and_data.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace slipstream {

absl::StatusOr<NetShapes> ShapesOf(const ModelSpec& model) {
  std::variant<NetShapes, ShapeError> shapes = InferShapes(model);
  if (const auto* error = std::get_if<ShapeError>(&shapes)) {
    return absl::InvalidArgumentError(
        fmt::format("model: layer {}: {}", error->layer, error->message));
  }
  return std::get<NetShapes>(std::move(shapes));
}

absl::Status CheckExamplesFit(const NetShapes& net, const Dataset& data) {
  if (data.shape == net.input() && data.outputs <= net.outputs()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("data of {}×{}×{} values in {} classes do not fit a model of {}×{}×{} and {}",
                  data.shape.channels, data.shape.height, data.shape.width, data.outputs,
                  net.input().channels, net.input().height, net.input().width, net.outputs()));
}

}  // namespace slipstream
