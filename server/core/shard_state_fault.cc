#include "server/core/shard_state_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "common/base/ids.h"
#include "common/run/policy_rows.h"

namespace slipstream {
namespace {

std::string StageFault(const ShardState& state, const ShardMachineOptions& options) {
  const std::vector<RunStage>& stages = state.stages.empty() ? options.stages : state.stages;
  if (stages.size() > kRunStagesMax) return fmt::format("it has {} stages", stages.size());
  if (state.stage >= stages.size()) {
    return fmt::format("stage {} of {}", state.stage, stages.size());
  }
  for (const RunStage& stage : stages) {
    const PolicyKind policy = stage.consistency.policy;
    if (std::ranges::find(kPolicyRows, policy, &PolicyRow::kind) == kPolicyRows.end()) {
      return fmt::format("a stage has policy number {}", static_cast<int>(policy));
    }
    if (!(stage.learning_rate >= 0 && std::isfinite(stage.learning_rate))) {
      return fmt::format("a stage has the learning rate {}", stage.learning_rate);
    }
    if (stage.consistency.max_staleness != options.stages.front().consistency.max_staleness) {
      return "a stage has another consistency.max_staleness than the run";
    }
  }
  if (state.phase < Phase::kWaitingForServers || state.phase > Phase::kFailed) {
    return fmt::format("phase number {}", static_cast<int>(state.phase));
  }
  return "";
}

std::string VersionFault(const ShardState& state) {
  const uint64_t decided = Value(state.decided);
  const uint64_t published = Value(state.published);
  if (published > decided) return fmt::format("version {} is beyond {}", published, decided);
  // Each version from the newest published one on is needed.
  const uint64_t kept = state.versions.size();
  if (kept > decided + 1 || kept < decided - published + 1) {
    return fmt::format("it describes {} versions up to {}, and {} is published", kept, decided,
                       published);
  }
  if (state.life_begin > state.decided || state.stage_begin > state.decided) {
    return fmt::format("its life or its stage began after version {}", decided);
  }
  const bool has_draft = state.draft.has_value();
  if (has_draft && (state.draft->forecast.from != state.decided || published != decided)) {
    return "an update is drafted from another version than the newest";
  }
  return "";
}

std::string CallsFault(const ShardState& state) {
  std::set<CallId> names;
  for (const PendingCall& call : state.waiting) {
    if (!names.insert(call.call).second) return "two calls that wait have one name";
    if (call.is_pull == call.push.has_value()) return "a call that waits is no push and no pull";
    for (const PendingCall::Trainer& trainer : call.trainers) {
      if (call.parts > 0 && trainer.part >= call.parts) {
        return fmt::format("a call that waits is for part {} of {}", trainer.part, call.parts);
      }
    }
  }
  return "";
}

}  // namespace

std::string FaultOf(const ShardState& state, const ShardMachineOptions& options) {
  if (!state.plan.has_value() || !state.is_initialized) return "it has no weights";
  if (state.plan->batches_per_epoch == 0) return "an epoch has no mini-batches";
  if (state.round.contributions() > 0) return "gradients are in the open round";
  if (std::string fault = StageFault(state, options); !fault.empty()) return fault;
  if (std::string fault = VersionFault(state); !fault.empty()) return fault;
  if (std::string fault = CallsFault(state); !fault.empty()) return fault;
  return state.members.Fault(options.gradients_in_flight);
}

}  // namespace slipstream
