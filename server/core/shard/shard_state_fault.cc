#include "server/core/shard/shard_state_fault.h"

#include <fmt/format.h>

#include <optional>

#include "common/base/ids.h"

namespace slipstream {

std::string FaultOf(const ShardState& state, const ShardMachineOptions& options) {
  const RunPosition& run = state.run;
  const KeptVersions& versions = state.versions;
  if (!run.plan.has_value() || !state.initial_weights.is_initialized()) return "it has no weights";
  if (run.plan->batches_per_epoch == 0) return "an epoch has no mini-batches";
  if (state.open.round.contributions() > 0) return "gradients are in the open round";
  if (std::string fault = run.Fault(options); !fault.empty()) return fault;
  if (std::string fault = versions.Fault(); !fault.empty()) return fault;
  if (versions.generation_begin() > versions.decided() || run.stage_begin > versions.decided()) {
    return fmt::format("its generation or its stage began after version {}",
                       Value(versions.decided()));
  }
  const std::optional<PushIntake::Draft>& draft = state.intake.draft();
  const bool is_newest_published = versions.published() == versions.decided();
  if (draft.has_value() && (draft->forecast.from != versions.decided() || !is_newest_published)) {
    return "an update is drafted from another version than the newest";
  }
  if (std::string fault = state.waiting.Fault(); !fault.empty()) return fault;
  return state.members.Fault(options.gradients_in_flight);
}

}  // namespace slipstream
