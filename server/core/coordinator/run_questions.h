#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_QUESTIONS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_QUESTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "server/core/coordinator/run_state.h"

namespace slipstream {

/// How far the model is prepared, for a worker that waits for it.
struct Preparation {
  enum class State : uint8_t { kWait, kGranted, kReady };
  State state = State::kWait;
  uint64_t grant = 0;
  ShardMap shard_map;
  std::string message;  // What the run waits for, for people.
};

/// The servers, workers and aggregators that a run cannot go on without.
struct MissingMembers {
  /// The longest silence of a server that does not count as missing. Servers report several times a
  /// second.
  static constexpr absl::Duration kServerSilenceMax = absl::Seconds(2);

  std::vector<ShardId> shards;

  /// Empty if a shard or an aggregator is missing, or if any worker would do. While the run trains,
  /// these are gone, and others are awaited in their places.
  std::vector<WorkerId> workers;

  /// The aggregators that have not reported, or do not know the members yet with which training
  /// begins. Empty if a shard or a worker is missing.
  std::vector<AggregatorId> aggregators;

  /// The number of workers that are lacking while the run trains or measures, if any would do.
  uint32_t more_workers = 0;

  /// For how long workers have been lacking while the run trains or measures.
  absl::Duration gone_for;

  /// How long it takes until the run fails if they do not come.
  absl::Duration fails_in;
};

/// The questions about a run that need several parts of its state, which must outlive this. Not
/// thread-safe, as the state is not.
class RunQuestions {
 public:
  explicit RunQuestions(const RunState& state) : state_(state) {}

  bool AllServersThere() const {
    return state_.servers.AllSynced() && state_.aggregators.AllReported();
  }

  /// Returns whether every shard has the weights with which the run begins.
  bool HasInitialWeights() const;

  /// Returns whether the places of workers that go are kept for others.
  bool KeepsPlaces() const;

  /// Since when a round has waited in an empty place; nothing if none does.
  std::optional<absl::Time> PlacesAwaitedSince() const {
    return state_.supply.PlacesAwaitedSince(state_.stages.present().consistency);
  }

  /// Returns whether the servers of a run that is over may be told to end.
  bool ServersMayExit(absl::Time now) const;

  /// Returns whether every server and aggregator that is not silent knows that it may.
  bool ServersMayStop(absl::Time now) const;

  /// Returns how far the model is prepared. REQUIRES: the worker is live, and the run is not over.
  Preparation PreparationFor(const Identity& worker) const;

  /// Returns the members that the run waits for; nothing if none is missing or the run is over.
  std::optional<MissingMembers> Missing(absl::Time now) const;

 private:
  std::optional<MissingMembers> MissingWhileTraining(absl::Time now) const;

  const RunState& state_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_QUESTIONS_H_
