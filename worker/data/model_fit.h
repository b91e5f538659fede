#ifndef SLIPSTREAM_WORKER_DATA_MODEL_FIT_H_
#define SLIPSTREAM_WORKER_DATA_MODEL_FIT_H_

#include "absl/status/status.h"
#include "common/model/net_shapes.h"
#include "worker/data/dataset.h"

namespace slipstream {

/// Checks that a net with these shapes can be trained on `data`. Flat examples, as from a table,
/// take the shape of the net's input if they have as many values. A net may have more classes than
/// occur in the data; it needs exactly as many targets.
///
/// Fails with INVALID_ARGUMENT; the message says what the data and the net have.
absl::Status FitToModel(const NetShapes& net, DataSplits& data);

/// Does the same for one of the two sets.
absl::Status FitToModel(const NetShapes& net, Dataset& data);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_MODEL_FIT_H_
