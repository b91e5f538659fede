#ifndef SLIPSTREAM_COMMON_SETTINGS_WORKER_MEMORY_H_
#define SLIPSTREAM_COMMON_SETTINGS_WORKER_MEMORY_H_

#include <cstdint>

#include "common/model/net_shapes.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The number of examples in one batch of a measurement. It is the same everywhere, because the
/// last digits of the mean loss depend on how examples are grouped.
inline constexpr uint32_t kTestBatchSize = 256;

/// The main memory, in bytes, that a ps_worker takes beside its data.
struct WorkerMemory {
  /// For each gradient under way, or each thread, weights, gradients and, on a processor, a batch's
  /// values between layers; what the worker's algorithm keeps; and the errors that its codec feeds
  /// back.
  uint64_t training = 0;

  /// For a measurement on the test set, the final one at the latest, if workers measure: weights
  /// and the values of a batch of it. Training holds its own meanwhile.
  uint64_t evaluation = 0;

  uint64_t bytes() const { return training + evaluation; }
};

/// Returns about how much a worker of the run takes. On a GPU (`on_processor` false), values
/// between layers lie there.
WorkerMemory WorkerMemoryNeeded(const NetShapes& net, const RunSpec& run, bool on_processor = true);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_WORKER_MEMORY_H_
