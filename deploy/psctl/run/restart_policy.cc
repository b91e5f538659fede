#include "deploy/psctl/run/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "common/process/exit_code.h"
#include "deploy/psctl/run/root_cause.h"

namespace slipstream {
namespace {

/// Returns whether the process itself is to blame: it was neither cut off from others nor ended by
/// a signal that others send.
bool IsItsOwnFailure(const ProcessEnd& end) {
  if (IsCutOff(end) || IsStopCode(end.exit_code)) return false;
  return end.signal != SIGKILL && !IsStopCode(128 + end.signal);
}

bool IsSame(const ProcessEnd& a, const ProcessEnd& b) {
  return a.exit_code == b.exit_code && a.signal == b.signal;
}

RestartDecision No(std::string why_not = "") { return {.why_not = std::move(why_not)}; }

}  // namespace

absl::StatusOr<RestartScope> ScopeOf(RestartChoice choice, bool saves) {
  switch (choice) {
    case RestartChoice::kNone:
      return RestartScope();
    case RestartChoice::kWorkers:
      return RestartScope{.workers = true};
    case RestartChoice::kPossible:
      return RestartScope{.servers = saves, .aggregators = true, .workers = true};
    case RestartChoice::kServers:
    case RestartChoice::kAll:
      break;
  }
  if (!saves) {
    return absl::InvalidArgumentError(
        "--restart of servers needs checkpoints, from which they go on: add --set "
        "durability.level=checkpoint, or synced; --restart=workers needs none");
  }
  return RestartScope{
      .servers = true, .aggregators = true, .workers = choice == RestartChoice::kAll};
}

RestartDecision RestartPolicy::Decide(const RestartFacts& facts) const {
  const ProcessEnd& end = facts.end;
  const bool did_its_part = end.signal == 0 && end.exit_code == 0 &&
                            (end.name.role == Role::kWorker || options_.servers_end_with_run);
  if (!options_.scope.Has(end.name.role) || end.was_told || did_its_part) return No();
  if (OnlyRepeats(end)) return No("it would only end so again");
  const auto& before = facts.before;
  if (IsItsOwnFailure(end) && before.has_value() && IsSame(before->end, end) &&
      facts.reached <= before->reached) {
    return No("it failed at the same place before");
  }
  const bool has_settled = facts.ran >= options_.settled_after;
  const uint32_t number = has_settled ? 1 : facts.starts + 1;
  if (number > options_.starts_max) {
    return No(fmt::format("it was started again {} time{} already", options_.starts_max,
                          options_.starts_max == 1 ? "" : "s"));
  }
  absl::Duration pause = options_.pause;
  for (uint32_t i = 1; i < number && pause < options_.pause_max; ++i) pause *= 4;
  return {.starts = true, .pause = std::min(pause, options_.pause_max), .number = number};
}

uint64_t Reached(const ProcessName& name, const v1::RunStatus& status) {
  if (name.role == Role::kWorker) {
    for (const v1::WorkerStatus& worker : status.workers()) {
      if (worker.worker() == name.number) return worker.pushes();
    }
    return 0;
  }
  const int shard = static_cast<int>(name.number);
  return shard < status.shards_size() ? status.shards(shard).version() : 0;
}

}  // namespace slipstream
