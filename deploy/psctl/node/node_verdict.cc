#include "deploy/psctl/node/node_verdict.h"

#include <algorithm>
#include <iterator>

#include "common/process/exit_code.h"
#include "deploy/psctl/run/root_cause.h"

namespace slipstream {
namespace {

bool HasFailed(const ProcessEnd& end) {
  return end.name.role == Role::kServer && !end.was_told && (end.signal != 0 || end.exit_code != 0);
}

}  // namespace

std::vector<ProcessEnd> EndsOf(Role role, std::span<const ProcessEnd> ends) {
  std::vector<ProcessEnd> found;
  std::ranges::copy_if(ends, std::back_inserter(found),
                       [role](const ProcessEnd& end) { return end.name.role == role; });
  return found;
}

NodeVerdict JudgeNode(const NodeFacts& facts) {
  if (std::ranges::any_of(facts.ends, HasFailed)) return NodeVerdict::kServerFailed;
  if (facts.servers_left > 0) return NodeVerdict::kGoOn;
  const bool has_waited = facts.has_servers && facts.without_servers > facts.finish_timeout;
  return facts.workers_left == 0 || has_waited ? NodeVerdict::kDone : NodeVerdict::kGoOn;
}

NodeVerdict JudgeLeaving(const NodeFacts& facts) {
  bool has_finished = facts.phase == v1::FINISHED;
  for (const ProcessEnd& end : facts.ends) {
    // A scheduler may signal processes itself.
    if (end.signal != 0 || IsStopCode(end.exit_code)) continue;
    const auto code = static_cast<ExitCode>(end.exit_code);
    const bool says_so = code == ExitCode::kRunFailed || code == ExitCode::kDiverged;
    const bool is_server = end.name.role == Role::kServer && !end.was_told;
    if (says_so || (is_server && end.exit_code != 0)) return NodeVerdict::kServerFailed;
    has_finished = has_finished || is_server;
  }
  if (facts.phase == v1::FAILED) return NodeVerdict::kServerFailed;
  return has_finished ? NodeVerdict::kDone : NodeVerdict::kGoOn;
}

std::optional<uint32_t> FindMissingShard(const v1::RunStatus& status, absl::Duration start_timeout,
                                         absl::Duration patience) {
  if (status.phase() < v1::TRAINING || status.phase() >= v1::FINISHED) return std::nullopt;
  const v1::MissingMembers& missing = status.missing();
  const bool is_silent = absl::Seconds(missing.fails_in_seconds()) < start_timeout - patience;
  if (missing.servers().empty() || !is_silent) return std::nullopt;
  return missing.servers(0).shard();
}

int NodeExitCode(const NodeFacts& facts) {
  const bool is_known = facts.has_servers || facts.phase == v1::FINISHED;
  const std::vector<ProcessEnd> workers = EndsOf(Role::kWorker, facts.ends);
  const bool any_ended_well = std::ranges::any_of(workers, [](const ProcessEnd& end) {
    return MeaningOf(end) == EndMeaning::kHarmless && !end.was_told;
  });
  const ProcessEnd* const cause = FindRootCause(workers);
  if (is_known || any_ended_well || cause == nullptr) return static_cast<int>(ExitCode::kOk);
  return static_cast<int>(ExitCodeFollowing(*cause));
}

}  // namespace slipstream
