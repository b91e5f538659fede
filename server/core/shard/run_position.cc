#include "server/core/shard/run_position.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/settings/policy_rows.h"

namespace slipstream {

std::string RunPosition::Fault(const ShardMachineOptions& options) const {
  const std::vector<RunStage>& all = StagesOr(options.stages);
  if (all.size() > kRunStagesMax) return fmt::format("it has {} stages", all.size());
  if (stage >= all.size()) return fmt::format("stage {} of {}", stage, all.size());
  for (const RunStage& each : all) {
    const PolicyKind policy = each.consistency.policy;
    if (std::ranges::find(kPolicyRows, policy, &PolicyRow::kind) == kPolicyRows.end()) {
      return fmt::format("a stage has policy number {}", static_cast<int>(policy));
    }
    if (!(each.learning_rate >= 0 && std::isfinite(each.learning_rate))) {
      return fmt::format("a stage has the learning rate {}", each.learning_rate);
    }
    if (each.consistency.max_staleness != options.stages.front().consistency.max_staleness) {
      return "a stage has another consistency.max_staleness than the run";
    }
  }
  if (phase < Phase::kWaitingForServers || phase > Phase::kFailed) {
    return fmt::format("phase number {}", static_cast<int>(phase));
  }
  return "";
}

}  // namespace slipstream
