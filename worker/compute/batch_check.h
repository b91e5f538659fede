#ifndef SLIPSTREAM_WORKER_COMPUTE_BATCH_CHECK_H_
#define SLIPSTREAM_WORKER_COMPUTE_BATCH_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/model/model_spec.h"
#include "common/model/net_shapes.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// What a net takes and gives, as far as its plan needs to know once its layers are prepared.
struct NetSizes {
  size_t parameters = 0;
  size_t inputs = 0;     // Of one example.
  uint32_t outputs = 0;  // Of one example.
  ModelSpec::Loss loss = ModelSpec::Loss::kCrossEntropy;

  static NetSizes Of(const ModelSpec& model, const NetShapes& shapes);
};

/// The number of examples. INVALID_ARGUMENT, with what is wrong, unless the batch holds whole
/// examples, from 1 to `batch_size_max`, and what the net's loss holds outputs against, or names as
/// many of the `kept` that its plan keeps.
absl::StatusOr<uint32_t> CheckBatch(const NetSizes& net, uint32_t batch_size_max,
                                    const Batch& batch, size_t kept = 0);

/// The number of examples that a plan may keep; the same of all of them.
absl::StatusOr<size_t> CheckTable(const NetSizes& net, const ExampleTable& table);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_BATCH_CHECK_H_
