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
/// host and sent with every step. All plans of the devices share the copies, which are freed with
/// the last plan.
///
/// Thread-safe: guarded by its own mutex, which is held while a table is copied, because anyone
/// else who wants the table has to wait for it anyway.
class KeptExamples {
 public:
  /// The copy on one device, in 32-bit words as GatherRows needs them.
  struct Copy {
    DeviceArray<uint32_t> examples;
    DeviceArray<uint32_t> answers;  // Labels or targets.
  };

  /// One copy per device, in the order of members.
  using Copies = std::vector<Copy>;

  /// A copy may take at most 1/free_share of the bytes that are free on a device. This leaves room
  /// for later allocations of the worker, and for other workers that start at the same time.
  /// Constant except in tests.
  static inline size_t free_share = 4;

  /// Returns the copies of a table that CheckTable accepts, with labels or targets. Returns null,
  /// and logs why, if there is no room, if another table is kept, or if a device fails, which the
  /// next step will report. REQUIRES: all callers have the same devices.
  std::shared_ptr<const Copies> CopiesOf(const ExampleTable& table,
                                         const std::vector<PlanMember>& members);

 private:
  std::shared_ptr<const Copies> MakeCopies(const ExampleTable& table,
                                           const std::vector<PlanMember>& members)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  ExampleTable table_ ABSL_GUARDED_BY(mutex_);  // The table that was copied.
  std::weak_ptr<const Copies> copies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_KEPT_EXAMPLES_H_
