#ifndef SLIPSTREAM_WORKER_TRAINING_FIRST_WEIGHTS_H_
#define SLIPSTREAM_WORKER_TRAINING_FIRST_WEIGHTS_H_

#include <span>

#include "absl/status/status.h"
#include "common/model/net_shapes.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Fills `weights` with those that a run of this net begins with: the values of the file that
/// model.init names, else the initial ones of its seed. Fails as ModelFile::Open and Read do.
/// REQUIRES: weights.size() == net.layout.parameters().
absl::Status FillFirstWeights(const RunSpec& run, const NetShapes& net, std::span<float> weights);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_FIRST_WEIGHTS_H_
