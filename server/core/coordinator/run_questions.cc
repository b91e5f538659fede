#include "server/core/coordinator/run_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace slipstream {

bool RunQuestions::HasInitialWeights() const {
  const Initialization& initialization = state_.initialization;
  return initialization.finished() && state_.servers.AllInitialized(initialization.announced_by());
}

bool RunQuestions::KeepsPlaces() const {
  const Phase phase = state_.phase.phase();
  const bool may_train = phase == Phase::kInitializing || phase == Phase::kTraining;
  return may_train && !state_.work.ends() &&
         state_.supply.KeepsPlaces(state_.stages.present().consistency);
}

bool RunQuestions::ServersMayExit(absl::Time now) const {
  const RunPhase& phase = state_.phase;
  const bool may_end = state_.rules.exits_after && phase.IsOver();
  if (!may_end || state_.membership.live() > 0) return false;
  // Servers that are started again for a run that is over come to learn that it is.
  const bool may_come = now - phase.start() <= state_.supply.timeout();
  if (!state_.servers.AllHeard() && may_come) return false;
  // Readers take the last state, unless one is too long at something else.
  const bool readers_have_time =
      phase.phase() == Phase::kFinished && now - phase.since() <= state_.rules.lease;
  return !readers_have_time || !state_.readers.any_live();
}

bool RunQuestions::ServersMayStop(absl::Time now) const {
  const ServerOrders& orders = state_.orders;
  return orders.may_exit &&
         state_.servers.AllSeenOrSilent(orders.number, state_.rules.lease, now) &&
         state_.aggregators.AllSeenOrSilent(orders.number, state_.rules.lease, now);
}

Preparation RunQuestions::PreparationFor(const Identity& worker) const {
  const Phase phase = state_.phase.phase();
  const Initialization& initialization = state_.initialization;
  Preparation answer;
  if (phase >= Phase::kTraining) {
    answer.state = Preparation::State::kReady;
    answer.shard_map = initialization.model()->shard_map;
    return answer;
  }
  const std::optional<Initialization::Grant>& grant = initialization.grant();
  if (phase == Phase::kInitializing && grant.has_value() && grant->holder == worker &&
      !initialization.finished()) {
    answer.state = Preparation::State::kGranted;
    answer.grant = grant->number;
    answer.shard_map = initialization.model()->shard_map;
    return answer;
  }
  if (phase == Phase::kWaitingForWorkers) {
    answer.message = fmt::format("{} of {} workers are there", state_.membership.live(),
                                 state_.supply.to_start());
  } else if (initialization.finished()) {
    answer.message = "waiting for the servers to confirm the initial weights";
  } else if (grant.has_value()) {
    answer.message =
        fmt::format("worker {} sends the initial weights", Value(grant->holder.worker));
  }
  return answer;
}

std::optional<MissingMembers> RunQuestions::Missing(absl::Time now) const {
  const RunPhase& phase = state_.phase;
  if (phase.IsOver()) return std::nullopt;
  const absl::Duration timeout = state_.supply.timeout();
  MissingMembers missing = {.fails_in = timeout};
  for (size_t shard = 0; shard < state_.servers.servers().size(); ++shard) {
    const std::optional<Servers::Server>& server = state_.servers.servers()[shard];
    const absl::Duration silence = now - (server.has_value() ? server->last_heard : phase.start());
    if (server.has_value() && silence <= MissingMembers::kServerSilenceMax) continue;
    missing.shards.push_back(ShardId{static_cast<uint32_t>(shard)});
    missing.fails_in = std::min(missing.fails_in, timeout - silence);
  }
  if (!missing.shards.empty()) return missing;

  switch (phase.phase()) {
    case Phase::kWaitingForServers:
      missing.aggregators = state_.aggregators.Missing();
      missing.fails_in -= now - phase.start();
      return missing;
    case Phase::kWaitingForWorkers:
      missing.workers = state_.supply.Missing();
      missing.fails_in -= now - phase.start();
      return missing;
    case Phase::kInitializing:
      if (HasInitialWeights()) {
        missing.aggregators = state_.aggregators.Behind(state_.initialization.announced_by(),
                                                        state_.rules.lease, now);
      } else if (state_.initialization.grant().has_value()) {
        missing.workers = {state_.initialization.grant()->holder.worker};
      }
      missing.fails_in -= now - phase.since();
      return missing;
    default:
      return MissingWhileTraining(now);
  }
}

std::optional<MissingMembers> RunQuestions::MissingWhileTraining(absl::Time now) const {
  MissingMembers missing;
  absl::Time since;
  const bool trains = state_.phase.phase() == Phase::kTraining;
  if (const std::optional<absl::Time> empty = PlacesAwaitedSince()) {
    missing.workers = state_.membership.EmptyPlaces();
    since = *empty;
  } else if (const auto lack = state_.supply.Lacking(trains)) {
    missing.more_workers = lack->workers;
    since = lack->since;
  } else {
    return std::nullopt;
  }
  missing.gone_for = now - since;
  missing.fails_in = state_.supply.timeout() - missing.gone_for;
  return missing;
}

}  // namespace slipstream
