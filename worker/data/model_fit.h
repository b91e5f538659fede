#ifndef SLIPSTREAM_WORKER_DATA_MODEL_FIT_H_
#define SLIPSTREAM_WORKER_DATA_MODEL_FIT_H_

#include "absl/status/status.h"
#include "common/model/net_shapes.h"
#include "worker/data/dataset.h"

namespace slipstream {

/// Makes sure that a net with these shapes can be trained on `data`. Examples that are flat, as
/// those of a table, take the shape of the net's input if they have as many values. Of classes the
/// net may have more than occur; of targets it needs as many.
///
/// Fails with INVALID_ARGUMENT naming what the data have and what the net has.
absl::Status FitToModel(const NetShapes& net, DataSplits& data);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_MODEL_FIT_H_
