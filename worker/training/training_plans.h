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

/// The plans of one worker, one for each gradient that may be in flight, and the memory of their
/// gradients. If the settings allow it, shards of this machine may read the gradients from that
/// memory. Movable only.
class TrainingPlans {
 public:
  TrainingPlans() = default;

  /// Prepares the plans for a net of `parameters` parameters. `device` must outlive them. Fails
  /// like Device::Prepare, and with INVALID_ARGUMENT if wire.transport is shm and gradients cannot
  /// lie in shared memory.
  static absl::StatusOr<TrainingPlans> Prepare(Device& device, const RunSpec& settings,
                                               size_t parameters);

  const std::vector<std::unique_ptr<Plan>>& plans() const { return plans_; }

  /// The arena that holds all gradients, if shards may read them from there; else null. Valid until
  /// this object is moved.
  const SharedArena* shared_arena() const { return shares_ ? &*arena_ : nullptr; }

 private:
  absl::Status MakeArena(const RunSpec& settings, size_t parameters);
  absl::Status PreparePlans(Device& device, const RunSpec& settings);

  /// Checks whether the plans' gradients lie in the arena.
  absl::Status CheckArena(const RunSpec& settings);

  std::optional<SharedArena> arena_;  // Must outlive the plans, which compute in it.
  bool shares_ = false;
  std::vector<std::unique_ptr<Plan>> plans_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TRAINING_PLANS_H_
