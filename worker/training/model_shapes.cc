#include "worker/training/model_shapes.h"

#include <utility>
#include <variant>

namespace slipstream {

absl::StatusOr<NetShapes> ShapesOf(const ModelSpec& model) {
  std::variant<NetShapes, ShapeError> shapes = InferShapes(model);
  if (const auto* error = std::get_if<ShapeError>(&shapes)) {
    return absl::InvalidArgumentError("model: " + error->Text());
  }
  return std::get<NetShapes>(std::move(shapes));
}

}  // namespace slipstream
