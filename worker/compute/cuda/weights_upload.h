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

/// Sends weights from the host to all devices of a plan, on separate streams. If a copy could not
/// be enqueued, the next Join reports it.
///
/// Send and Await may be called from any thread; only the plan's owner calls Join.
class WeightsUpload {
 public:
  /// All arguments must outlive this object.
  WeightsUpload(const std::vector<PlanMember>& members, const ArenaMap& map, const HostMemory& host)
      : members_(members), map_(map), host_(host) {}

  /// Enqueues a copy of the range to the devices.
  void Send(ParameterRange range) { Keep(Enqueue(range)); }

  /// Waits until everything sent has been copied; until then the host's weights must not be
  /// written.
  void Await() { Keep(AwaitAll(members_, &DeviceContext::upload)); }

  /// Makes computations enqueued from now on wait for everything sent. Returns the first failure.
  absl::Status Join();

 private:
  absl::Status Enqueue(ParameterRange range) const;
  void Keep(const absl::Status& status);

  const std::vector<PlanMember>& members_;
  const ArenaMap& map_;
  const HostMemory& host_;

  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // The first failure.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_WEIGHTS_UPLOAD_H_
