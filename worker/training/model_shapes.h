#ifndef SLIPSTREAM_WORKER_TRAINING_MODEL_SHAPES_H_
#define SLIPSTREAM_WORKER_TRAINING_MODEL_SHAPES_H_

#include "absl/status/statusor.h"
#include "common/model/net_shapes.h"

namespace slipstream {

/// Returns the shapes of a run's net. INVALID_ARGUMENT, naming the layer, if the layers do not fit
/// together.
absl::StatusOr<NetShapes> ShapesOf(const ModelSpec& model);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_MODEL_SHAPES_H_
