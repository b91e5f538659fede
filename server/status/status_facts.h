#ifndef SLIPSTREAM_SERVER_STATUS_STATUS_FACTS_H_
#define SLIPSTREAM_SERVER_STATUS_STATUS_FACTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/view.h"
#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"
#include "server/core/coordinator/coordinator.h"
#include "server/core/coordinator/evaluations.h"
#include "server/core/coordinator/events.h"
#include "server/core/coordinator/membership.h"
#include "server/core/run_stages.h"

namespace slipstream {

/// The facts of one moment from which GetStatus is made.
struct StatusFacts {
  uint64_t run = 0;

  /// The run's stages, at least one, and the place of the one that it is in.
  std::vector<RunStage> stages = {RunStage()};
  uint32_t stage = 0;
  Phase phase = Phase::kWaitingForServers;
  std::string failure;
  std::string not_kept;  // Why the coordinator's state cannot be written; empty if it can.

  /// Why training ended; empty before.
  std::string ended_by;
  absl::Duration training_time;
  uint64_t batches_total = 0;
  uint64_t batches_done = 0;
  uint32_t epochs_done = 0;
  uint64_t parameters = 0;
  ViewNumber view{};
  uint32_t live_workers = 0;
  uint64_t version_skew = 0;

  /// The servers, workers and aggregators that the run waits for.
  std::optional<MissingMembers> missing;

  /// The latest report of every shard that has reported, in order of shards.
  std::vector<v1::ShardStatus> shards;

  /// All aggregators of the run, by group and shard; without an address if they never reported.
  std::vector<v1::AggregatorStatus> aggregators;

  struct Worker {
    Membership::Worker record;
    absl::Duration lease_left;

    /// Set if the worker has mini-batches to push.
    bool has_work = false;

    /// How long it has been idle, and whether that is too long (stalled_workers.h).
    absl::Duration idle;
    bool is_stalled = false;

    /// The latest heartbeat; empty before the first.
    v1::HeartbeatRequest heartbeat;
  };
  std::map<WorkerId, Worker> workers;

  std::vector<v1::ReaderStatus> readers;
  size_t readers_unlisted = 0;  // How many others there are.
  std::deque<Evaluation> evaluations;
  absl::Time now;
  std::string weights_sha256;
  std::deque<RunEvent> events;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_STATUS_FACTS_H_
