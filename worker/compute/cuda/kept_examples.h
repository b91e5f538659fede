#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_KEPT_EXAMPLES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_KEPT_EXAMPLES_H_

#include <cstddef>
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
/// Thread-safe: guarded by its own mutex, which is held while a table is copied: who else wants it
/// has to wait for it anyway.
class KeptExamples {
 public:
  /// On one device; 32-bit words, as GatherRows takes them.
  struct Copy {
    DeviceArray<uint32_t> examples;
    DeviceArray<uint32_t> answers;  // Labels or targets.
  };

  /// Of each device, in the order of members.
  using Copies = std::vector<Copy>;

  /// A copy may take one in so many of the bytes that are free on a device, so that there is room
  /// for what a worker allocates later, and for others that begin at the same time. Constant but in
  /// tests.
  static inline size_t free_share = 4;

  /// Of a table that CheckTable accepts, with labels or targets. Null, and the log says why, where
  /// there is no room, where another table is kept, or where a device fails, which the next step
  /// will tell. REQUIRES: all who ask have the same devices.
  std::shared_ptr<const Copies> CopiesOf(const ExampleTable& table,
                                         const std::vector<PlanMember>& members);

 private:
  std::shared_ptr<const Copies> MakeCopies(const ExampleTable& table,
                                           const std::vector<PlanMember>& members)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  ExampleTable table_ ABSL_GUARDED_BY(mutex_);  // What was copied.
  std::weak_ptr<const Copies> copies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_KEPT_EXAMPLES_H_
