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

/// The gradients of several devices on their way to the host: NCCL adds up what each has computed,
/// on streams of their own, and the first sends the sum down.
///
/// Not in graphs: one thread that launches NCCL in graphs of several devices can wait for ever, as
/// NCCL's guide says. So whoever waits for a pass calls Collect as soon as all have computed a
/// range, and backward goes on meanwhile.
///
/// Not thread-safe: owned by one plan.
class GroupGradients {
 public:
  /// Of the members' devices, which must differ; all that is named must outlive it. While its work
  /// is given to one device after the other, it holds `launching`; whoever allocates or frees on
  /// these devices from another thread must hold it, too, since CUDA may let that wait for what was
  /// given to the first, and the rest wait for that. INVALID_ARGUMENT if NCCL is missing or does
  /// not take the devices; but it connects them with the first sum.
  static absl::StatusOr<std::unique_ptr<GroupGradients>> New(const std::vector<PlanMember>& members,
                                                             const std::vector<int>& devices,
                                                             const ArenaMap& map,
                                                             const HostMemory& host,
                                                             Mutex& launching);
  ~GroupGradients();
  GroupGradients(const GroupGradients&) = delete;
  GroupGradients& operator=(const GroupGradients&) = delete;

  /// Enqueues that the sum of the pass's i-th range comes down. REQUIRES: all devices have computed
  /// their part of it; i is below the number of nodes.
  absl::Status Collect(size_t i, ParameterRange range);

  /// Whether that of the pass of this number is on the host.
  bool HasCome(size_t i, uint32_t pass) const;

  /// ABORTED if a sum under way has failed.
  absl::Status Check() const;

  /// A device or a sum has failed: nothing more is collected, and what is under way, of which
  /// nothing comes, is ended when this goes.
  void Fail() { has_failed_ = true; }

  /// What a user is told if the first sum fails: the same will happen again.
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
  std::vector<cudaStream_t> streams_;  // Of each device, and so:
  std::vector<ncclComm_t> communicators_;
  bool has_failed_ = false;
  PinnedArray<uint32_t> flags_;  // Of each range.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_GROUP_GRADIENTS_H_
