#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_GROUP_GRADIENTS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_GROUP_GRADIENTS_H_

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/cuda/cuda_libraries.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/plan_member.h"
#include "worker/compute/cuda/plan_memory.h"

namespace slipstream::cuda {

/// Brings the gradients of several devices to the host: NCCL sums the gradients on separate
/// streams, and the first device sends the sum to the host.
///
/// Sums are not part of the graphs: a single thread that launches NCCL in graphs of several devices
/// can wait for ever, as NCCL's guide says. So the thread that waits for a pass calls Collect as
/// soon as all devices have computed a range, while the backward pass goes on.
///
/// Not thread-safe: owned by one plan.
class GroupGradients {
 public:
  /// `devices` are the members' devices, which must differ. All arguments must outlive this object.
  /// It holds `launching` while it gives work to one device after another. Another thread that
  /// allocates or frees on these devices must hold `launching` too: CUDA may let that thread wait
  /// for the work of the first device, while the rest of the work waits for that thread.
  /// INVALID_ARGUMENT if NCCL is missing or does not accept the devices; NCCL connects them only
  /// with the first sum.
  static absl::StatusOr<std::unique_ptr<GroupGradients>> New(const std::vector<PlanMember>& members,
                                                             const std::vector<int>& devices,
                                                             const ArenaMap& map,
                                                             const HostMemory& host,
                                                             Mutex& launching);
  ~GroupGradients();
  GroupGradients(const GroupGradients&) = delete;
  GroupGradients& operator=(const GroupGradients&) = delete;

  /// Enqueues the sum of the pass's i-th range and its copy to the host. REQUIRES: all devices have
  /// computed their part of it; i is below the number of nodes.
  absl::Status Collect(size_t i, ParameterRange range);

  /// True if the sum of the i-th range of pass number `pass` is on the host.
  bool HasCome(size_t i, uint32_t pass) const;

  /// Returns ABORTED if a sum under way has failed.
  absl::Status Check() const;

  /// Notes that a device or a sum has failed: nothing more may be collected, and the sums under
  /// way, which never complete, are aborted by the destructor.
  void Fail() { has_failed_ = true; }

  /// Returns the message for a user if the first sum fails, since it will fail again.
  static absl::Status CannotConnect(const absl::Status& status);

 private:
  GroupGradients(const Nccl& nccl, const std::vector<PlanMember>& members, const ArenaMap& map,
                 const HostMemory& host, Mutex& launching)
      : nccl_(nccl), members_(members), map_(map), host_(host), launching_(launching) {}

  absl::Status Start(const std::vector<int>& devices);
  absl::Status AddUp(ParameterRange range);
  absl::Status Reduce(size_t begin, size_t size);

  const Nccl& nccl_;
  const std::vector<PlanMember>& members_;
  const ArenaMap& map_;
  const HostMemory& host_;
  Mutex& launching_;
  std::vector<cudaStream_t> streams_;      // One per device.
  std::vector<ncclComm_t> communicators_;  // One per device.
  bool has_failed_ = false;
  PinnedArray<uint32_t> flags_;  // One per range.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_GROUP_GRADIENTS_H_
