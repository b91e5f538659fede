#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_WATCH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/group_gradients.h"
#include "worker/compute/cuda/plan_member.h"

namespace slipstream::cuda {

/// How far the devices of a plan are with its passes, as their flags say. Passes are numbered from
/// 1; a flag that holds the number was raised by that pass.
///
/// Not thread-safe: owned by one plan.
class PassWatch {
 public:
  /// Must outlive it.
  explicit PassWatch(const std::vector<PlanMember>& members) : members_(members) {}

  /// Failures of its sums end waits, too. Must outlive them.
  void WatchSums(const GroupGradients& group) { group_ = &group; }

  /// The number of the pass that begins.
  uint32_t Begin() { return ++pass_; }

  /// Of the one under way, or the last.
  uint32_t pass() const { return pass_; }

  /// Whether all devices have raised it in the pass under way.
  bool AllRaised(size_t flag) const;

  /// Waits, awake, for what the pass under way brings about. ABORTED if a device is lost, or takes
  /// longer than DeviceContext::wait_max.
  absl::Status Await(absl::FunctionRef<bool()> holds) const;

 private:
  /// Whether the devices have done all they were given; an error if one has failed.
  absl::StatusOr<bool> AreIdle() const;

  const std::vector<PlanMember>& members_;
  const GroupGradients* group_ = nullptr;
  uint32_t pass_ = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_WATCH_H_
