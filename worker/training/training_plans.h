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
#include "common/settings/run_spec.h"
#include "worker/compute/plan.h"
#include "worker/training/thread_plans.h"

namespace slipstream {

/// The plans of one worker, one for each slot, which is a gradient that may be in flight, or one
/// for each thread that computes on the only slot; and the memory of the slots' gradients. If the
/// settings allow it, shards of this machine may read the gradients from that memory. Movable only.
class TrainingPlans {
 public:
  TrainingPlans() = default;

  /// Prepares the plans for a net of `parameters` parameters. `device` must outlive them, and be
  /// thread-safe where worker.threads is above 1. Fails like Device::Prepare, and with
  /// INVALID_ARGUMENT if wire.transport is shm and gradients cannot lie in shared memory.
  static absl::StatusOr<TrainingPlans> Prepare(Device& device, const RunSpec& settings,
                                               size_t parameters);

  const std::vector<std::unique_ptr<Plan>>& plans() const {
    return threads_ != nullptr ? threads_->plans() : plans_;
  }

  /// The plans by threads; null for one thread.
  ThreadPlans* threads() const { return threads_.get(); }

  size_t slots() const { return threads_ != nullptr ? 1 : plans_.size(); }

  /// The arenas through which a slot's weights and gradients are exchanged.
  ModelArenas& slot(size_t number) const;

  /// The arena that holds all gradients, if shards may read them from there; else null. Valid until
  /// this object is moved.
  const SharedArena* shared_arena() const { return shares_ ? &*arena_ : nullptr; }

 private:
  absl::Status MakeArena(const RunSpec& settings, size_t parameters);
  absl::Status PreparePlans(Device& device, const RunSpec& settings, size_t parameters);

  /// Checks whether the plans' gradients lie in the arena.
  absl::Status CheckArena(const RunSpec& settings);

  std::optional<SharedArena> arena_;  // Must outlive the plans, which compute in it.
  bool shares_ = false;
  std::vector<std::unique_ptr<Plan>> plans_;  // Empty if there are several threads.
  std::unique_ptr<ThreadPlans> threads_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TRAINING_PLANS_H_
