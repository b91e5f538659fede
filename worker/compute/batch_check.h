#ifndef SLIPSTREAM_WORKER_COMPUTE_BATCH_CHECK_H_
#define SLIPSTREAM_WORKER_COMPUTE_BATCH_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/model/model_spec.h"
#include "common/model/net_shapes.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// The sizes of a net that its plan still needs once the layers are prepared.
struct NetSizes {
  size_t parameters = 0;
  size_t inputs = 0;     // Per example.
  uint32_t outputs = 0;  // Per example.
  ModelSpec::Loss loss = ModelSpec::Loss::kCrossEntropy;

  static NetSizes Of(const ModelSpec& model, const NetShapes& shapes);
};

/// Returns the number of examples in a batch. Fails with INVALID_ARGUMENT, saying what is wrong,
/// unless the batch holds from 1 to `batch_size_max` whole examples and an answer for each as the
/// net's loss needs it, or names that many of the `kept` examples that its plan keeps.
absl::StatusOr<uint32_t> CheckBatch(const NetSizes& net, uint32_t batch_size_max,
                                    const Batch& batch, size_t kept = 0);

/// Returns the number of examples of a table that a plan may keep. Checks all of them like
/// CheckBatch.
absl::StatusOr<size_t> CheckTable(const NetSizes& net, const ExampleTable& table);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_BATCH_CHECK_H_
