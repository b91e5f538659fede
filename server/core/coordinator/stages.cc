#include "server/core/coordinator/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/settings/policy_rows.h"

namespace slipstream {

uint32_t Stages::Since() const {
  uint32_t since = at_;
  while (stages_[since].begins_at_once) --since;
  return since;
}

void Stages::EnterNext(std::optional<Version> drained) {
  PS_CHECK(at_ + 1 < stages_.size());
  ++at_;
  begins_with_ = present().begins_at_once ? std::nullopt : drained;
  is_open_ = false;
  if (!present().begins_at_once) holds_work_ = true;
}

void Stages::Open() {
  is_open_ = true;
  holds_work_ = false;
}

void Stages::ExtendTo(uint32_t epoch) {
  stages_[at_].until_epoch = std::max(stages_[at_].until_epoch, epoch);
}

bool Stages::CanGoOnFrom(const SavedVersion& from) const {
  PS_CHECK(from.stage < stages_.size());
  // The last version of a stage is the one with which the next begins.
  return from.stage >= at_ || (from.stage + 1 == at_ && from.version == begins_with_);
}

absl::Status Stages::Change(const RunChange& change, bool begins_at_once, uint32_t until_epoch) {
  std::vector<RunStage> changed = WithChange(stages_, at_, change, begins_at_once, until_epoch);
  if (changed.size() > kRunStagesMax) {
    return absl::ResourceExhaustedError(
        fmt::format("a run has at most {} stages, with those that changes add", kRunStagesMax));
  }
  stages_ = std::move(changed);
  has_changed_ = true;
  return absl::OkStatus();
}

absl::Status Stages::RefuseChange(const RunChange& change) const {
  const PolicyRow& policy = RowOf(change.settings.consistency.policy);
  const PolicyRow& before = RowOf(present().consistency.policy);
  if (policy.traits.workers_make_weights() || before.traits.workers_make_weights()) {
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
  if (change.sets_policy && policy.traits.adds_in_place() != before.traits.adds_in_place()) {
    const bool is_new = policy.traits.adds_in_place();
    return absl::FailedPreconditionError(fmt::format(
        "{} adds gradients to the weights in place, and {} makes versions: a run trains in one of "
        "these ways from its begin to its end",
        (is_new ? policy : before).name, (is_new ? before : policy).name));
  }
  return absl::OkStatus();
}

}  // namespace slipstream
