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

/// Tracks the progress of a plan's devices by their flags. Passes are numbered from 1; a flag with
/// that number was raised by that pass.
///
/// Not thread-safe: owned by one plan.
class PassWatch {
 public:
  /// `members` must outlive this object.
  explicit PassWatch(const std::vector<PlanMember>& members) : members_(members) {}

  /// Lets failures of the group's sums end waits, too. `group` must outlive all waits.
  void WatchSums(const GroupGradients& group) { group_ = &group; }

  /// Begins a pass and returns its number.
  uint32_t Begin() { return ++pass_; }

  /// The number of the pass under way, or of the last one.
  uint32_t pass() const { return pass_; }

  /// True if all devices have raised this flag in the pass under way.
  bool AllRaised(size_t flag) const;

  /// Waits, by polling, until `holds` returns true. ABORTED if a device is lost, or takes longer
  /// than DeviceContext::wait_max.
  absl::Status Await(absl::FunctionRef<bool()> holds) const;

 private:
  /// True if the devices have done all their work; an error if one has failed.
  absl::StatusOr<bool> AreIdle() const;

  const std::vector<PlanMember>& members_;
  const GroupGradients* group_ = nullptr;
  uint32_t pass_ = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_WATCH_H_
