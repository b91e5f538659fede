// The part of Coordinator that changes a run while it trains.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/run/policy_rows.h"
#include "server/core/coordinator.h"

namespace slipstream {

absl::Status Coordinator::RefuseChange(const RunChange& change) const {
  if (absl::Status over = RefuseIfOver(); !over.ok()) return over;
  if (servers_.AnyUnheard()) {
    return absl::UnavailableError("the coordinator was restarted, and has yet to hear all servers");
  }
  if (phase_ < Phase::kTraining) {
    return absl::FailedPreconditionError(
        fmt::format("training has not begun: the run is {}", Name(phase_)));
  }
  if (end_reason_.has_value() || phase_ > Phase::kDraining) {
    return absl::FailedPreconditionError("training is ending: no gradient is left to change");
  }
  const PolicyRow& policy = RowOf(change.settings.consistency.policy);
  if (all_reduces_ || policy.traits.workers_make_weights()) {
    return absl::FailedPreconditionError(
        "under allreduce the workers make the updates, by what run.yaml says from the beginning of "
        "a run to its end: neither policy nor rate change");
  }
  if (change.sets_policy && policy.traits.in_step) {
    return absl::FailedPreconditionError(
        fmt::format("{0} cannot take over while a run trains: its workers need all shards at one "
                    "version; name it in run.yaml for the first epochs (consistency.before)",
                    policy.name));
  }
  const PolicyRow& before = RowOf(present().consistency.policy);
  if (change.sets_policy && policy.traits.adds_in_place() != before.traits.adds_in_place()) {
    const bool is_new = policy.traits.adds_in_place();
    return absl::FailedPreconditionError(fmt::format(
        "{} adds gradients to the weights in place, and {} makes versions: a run trains in one of "
        "these ways from its begin to its end",
        (is_new ? policy : before).name, (is_new ? before : policy).name));
  }
  return absl::OkStatus();
}

absl::StatusOr<Coordinator::ChangeEffect> Coordinator::OnChange(const RunChange& change,
                                                                absl::Time now) {
  if (absl::Status refused = RefuseChange(change); !refused.ok()) return refused;
  // The stages stay as they are if the change says what the present one and all later ones have.
  if (WithChange(stages_, stage_, change, /*begins_at_once=*/true, 0) == stages_) {
    return ChangeEffect();
  }
  // Rounds need all shards at one version. So they end as at any end of a stage, with an epoch.
  const bool is_at_once = phase_ == Phase::kTraining && !works_in_rounds();
  const uint32_t epoch = std::min(present().until_epoch, epochs_done() + 1);
  if (!is_at_once && epoch * orders_.model->batches_per_epoch >= batches_total()) {
    return absl::FailedPreconditionError(
        fmt::format("the last epoch is under way, and under {} a change holds from the end of an "
                    "epoch on",
                    RowOf(present().consistency.policy).name));
  }
  ChangeEffect effect;
  if (!is_at_once) effect.after_epoch = epoch;
  std::vector<RunStage> changed = WithChange(stages_, stage_, change, is_at_once, epoch);
  if (changed.size() > kRunStagesMax) {
    return absl::ResourceExhaustedError(
        fmt::format("a run has at most {} stages, with those that changes add", kRunStagesMax));
  }
  stages_ = std::move(changed);
  has_changed_ = true;
  ++journal_changes_;
  const RunStage& next = stages_[stage_ + 1];
  AddNote(false, "an operator changes the run",
          {{"policy", RowOf(next.consistency.policy).name},
           {"learning_rate", next.learning_rate},
           {"after_epoch", effect.after_epoch.value_or(epochs_done())}});
  if (is_at_once) EnterStage(stage_ + 1, now);
  Advance(now);
  return effect;
}

}  // namespace slipstream
