#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_KEPT_EXAMPLES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_KEPT_EXAMPLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/plan_member.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// Copies of a training set on the devices of a worker, so that a batch need not be gathered on the
/// host and go up with every step. All plans there share them; they go with the last one.
///
/// Thread-safe: guarded by its own mutex.
class KeptExamples {
 public:
  /// On one device; 32-bit words, as GatherRows takes them.
  struct Copy {
    DeviceArray<uint32_t> examples;
    DeviceArray<uint32_t> answers;  // Labels or targets.
  };

  /// Of each device, in the order of members.
  using Copies = std::vector<Copy>;

  /// Of a table that CheckTable accepts. Null, and the log says why, where a copy would take more
  /// than a quarter of what is free on one of the devices, so that several workers that begin at
  /// once leave room for each other and for what else they need; where another table is kept; or
  /// where a device fails, which the next step will tell. REQUIRES: all who ask have the same
  /// devices.
  std::shared_ptr<const Copies> CopiesOf(const ExampleTable& table,
                                         const std::vector<PlanMember>& members);

 private:
  Mutex mutex_;
  ExampleTable table_ ABSL_GUARDED_BY(mutex_);  // What was copied.
  std::weak_ptr<const Copies> copies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_KEPT_EXAMPLES_H_
