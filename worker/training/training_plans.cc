#include "worker/training/training_plans.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "common/log/log.h"

namespace slipstream {
namespace {

/// Logs why gradients are not shared; fails if the settings allow nothing else.
absl::Status DoWithoutSharing(const RunSpec& settings, absl::string_view why) {
  const std::string reason(why);
  if (settings.wire.transport == WireSpec::Transport::kShm) {
    return absl::InvalidArgumentError(
        "wire.transport is shm, and gradients cannot lie in shared memory: " + reason +
        "; use auto or unix");
  }
  LogInfo("gradients do not lie in shared memory", {{"reason", reason}});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingPlans> TrainingPlans::Prepare(Device& device, const RunSpec& settings,
                                                     size_t parameters) {
  TrainingPlans made;
  absl::Status status = made.MakeArena(settings, parameters);
  if (status.ok()) status = made.PreparePlans(device, settings);
  if (status.ok()) status = made.CheckArena(settings);
  if (!status.ok()) return status;
  return made;
}

absl::Status TrainingPlans::MakeArena(const RunSpec& settings, size_t parameters) {
  // Fragments are pushed from memory of their own (LocalSteps::outbox).
  if (!settings.wire.may_share_memory() || settings.worker.fragments() > 1) return absl::OkStatus();
  absl::StatusOr<SharedArena> arena =
      SharedArena::Make(settings.training.pipeline_depth, parameters);
  if (!arena.ok()) return DoWithoutSharing(settings, arena.status().message());
  arena_ = *std::move(arena);
  return absl::OkStatus();
}

absl::Status TrainingPlans::PreparePlans(Device& device, const RunSpec& settings) {
  for (uint32_t slot = 0; slot < settings.training.pipeline_depth; ++slot) {
    absl::StatusOr<std::unique_ptr<Plan>> plan =
        device.Prepare(settings.model,
                       {.batch_size_max = settings.training.batch_size,
                        .seed = settings.seed,
                        .precision = settings.compute.precision,
                        .deterministic = settings.compute.deterministic,
                        .gradients = arena_.has_value() ? arena_->part(slot) : std::span<float>()});
    if (!plan.ok()) return plan.status();
    plans_.push_back(*std::move(plan));
  }
  return absl::OkStatus();
}

absl::Status TrainingPlans::CheckArena(const RunSpec& settings) {
  if (!arena_.has_value()) return absl::OkStatus();
  size_t there = 0;
  for (size_t i = 0; i < plans_.size(); ++i) {
    there += plans_[i]->gradients_host().data() == arena_->part(i).data() ? 1 : 0;
  }
  shares_ = there == plans_.size();
  if (shares_) return absl::OkStatus();
  if (there == 0) arena_.reset();
  return DoWithoutSharing(settings, "the device has memory of its own for them");
}

}  // namespace slipstream
