#ifndef SLIPSTREAM_WORKER_TRAINING_NET_AND_DATA_H_
#define SLIPSTREAM_WORKER_TRAINING_NET_AND_DATA_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/net_shapes.h"
#include "worker/data/dataset.h"

namespace slipstream {

/// The shapes of a run's net. INVALID_ARGUMENT, naming the layer, if they do not fit together.
absl::StatusOr<NetShapes> ShapesOf(const ModelSpec& model);

/// INVALID_ARGUMENT, with both shapes, if the net cannot take the examples.
absl::Status CheckExamplesFit(const NetShapes& net, const Dataset& data);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_NET_AND_DATA_H_
