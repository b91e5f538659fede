#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_WEIGHTS_UPLOAD_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_WEIGHTS_UPLOAD_H_

#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/cuda/plan_member.h"
#include "worker/compute/cuda/plan_memory.h"

namespace slipstream::cuda {

/// Weights on their way from the host to all devices of a plan, on streams of their own. A copy
/// that could not be enqueued is told to whoever joins next.
///
/// Send and Await may be called from any thread; Join is the plan's owner's.
class WeightsUpload {
 public:
  /// All must outlive it.
  WeightsUpload(const std::vector<PlanMember>& members, const ArenaMap& map, const HostMemory& host)
      : members_(members), map_(map), host_(host) {}

  /// Enqueues that the range comes to the devices.
  void Send(ParameterRange range) { Keep(Enqueue(range)); }

  /// Waits for what was sent: until then the host's weights may not be written.
  void Await() { Keep(AwaitAll(members_, &DeviceContext::upload)); }

  /// What is enqueued for computing from now on waits for what was sent.
  absl::Status Join();

 private:
  absl::Status Enqueue(ParameterRange range) const;
  void Keep(const absl::Status& status);

  const std::vector<PlanMember>& members_;
  const ArenaMap& map_;
  const HostMemory& host_;

  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // The first.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_WEIGHTS_UPLOAD_H_
