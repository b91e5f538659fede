#ifndef SLIPSTREAM_WORKER_TRAINING_TRAINING_PLANS_H_
#define SLIPSTREAM_WORKER_TRAINING_TRAINING_PLANS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/local/shared_arena.h"
#include "common/run/run_spec.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// The plans of one worker, one for each gradient that may be under way, and the memory that their
/// gradients lie in: where the settings allow it, such that shards of this machine may take them
/// from there. Movable only.
class TrainingPlans {
 public:
  TrainingPlans() = default;

  /// Of a net of so many parameters. `device` must outlive them. The statuses of Device::Prepare;
  /// INVALID_ARGUMENT if wire.transport is shm and gradients cannot lie in shared memory.
  static absl::StatusOr<TrainingPlans> Prepare(Device& device, const RunSpec& settings,
                                               size_t parameters);

  const std::vector<std::unique_ptr<Plan>>& plans() const { return plans_; }

  /// What all gradients lie in, if shards may take them from there; else null. As long as this is
  /// not moved.
  const SharedArena* shared_arena() const { return shares_ ? &*arena_ : nullptr; }

 private:
  absl::Status MakeArena(const RunSpec& settings, size_t parameters);
  absl::Status PreparePlans(Device& device, const RunSpec& settings);

  /// Finds out whether the plans' gradients lie in the arena.
  absl::Status CheckArena(const RunSpec& settings);

  std::optional<SharedArena> arena_;  // Outlives the plans, which compute in it.
  bool shares_ = false;
  std::vector<std::unique_ptr<Plan>> plans_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TRAINING_PLANS_H_
