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
  if (status.ok()) status = made.PreparePlans(device, settings, parameters);
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

absl::Status TrainingPlans::PreparePlans(Device& device, const RunSpec& settings,
                                         size_t parameters) {
  const uint32_t slots = settings.training.pipeline_depth;
  const auto prepare = [&](size_t number) {
    const bool is_pushed_from = arena_.has_value() && number < slots;
    return device.Prepare(
        settings.model, {.batch_size_max = settings.training.batch_size,
                         .seed = settings.seed,
                         .precision = settings.compute.precision,
                         .deterministic = settings.compute.deterministic,
                         .gradients = is_pushed_from ? arena_->part(number) : std::span<float>()});
  };
  if (settings.worker.threads > 1) {
    auto threads = ThreadPlans::Make(settings.worker.threads, parameters, prepare);
    if (!threads.ok()) return threads.status();
    threads_ = *std::move(threads);
    return absl::OkStatus();
  }
  for (uint32_t slot = 0; slot < slots; ++slot) {
    absl::StatusOr<std::unique_ptr<Plan>> plan = prepare(slot);
    if (!plan.ok()) return plan.status();
    plans_.push_back(*std::move(plan));
  }
  return absl::OkStatus();
}

ModelArenas& TrainingPlans::slot(size_t number) const {
  if (threads_ != nullptr) return threads_->model();
  return *plans_[number];
}

absl::Status TrainingPlans::CheckArena(const RunSpec& settings) {
  if (!arena_.has_value()) return absl::OkStatus();
  size_t there = 0;
  for (size_t i = 0; i < slots(); ++i) {
    there += slot(i).gradients_host().data() == arena_->part(i).data() ? 1 : 0;
  }
  shares_ = there == slots();
  if (shares_) return absl::OkStatus();
  if (there == 0) arena_.reset();
  return DoWithoutSharing(settings, "the device has memory of its own for them");
}

}  // namespace slipstream
