#ifndef SLIPSTREAM_SERVER_SERVICE_RUN_STATUS_H_
#define SLIPSTREAM_SERVER_SERVICE_RUN_STATUS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/view.h"
#include "common/run/run_spec.h"
#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"
#include "server/core/coordinator_evaluations.h"
#include "server/core/coordinator_membership.h"

namespace slipstream {

/// What GetStatus is made of, as of one moment.
struct RunFacts {
  uint64_t run = 0;
  Phase phase = Phase::kWaitingForServers;
  std::string failure;

  /// Why training ended; empty before.
  std::string ended_by;
  absl::Duration training_time;
  uint64_t batches_total = 0;
  uint64_t batches_done = 0;
  uint32_t epochs_done = 0;
  uint64_t parameters = 0;
  ViewNumber view{};
  uint32_t live_workers = 0;

  /// The latest of every shard that has reported, in order of shards.
  std::vector<v1::ShardStatus> shards;

  struct Worker {
    Membership::Worker record;
    absl::Duration lease_left;

    /// The latest; empty before the first.
    v1::HeartbeatRequest heartbeat;
  };
  std::map<WorkerId, Worker> workers;

  std::deque<Evaluation> evaluations;
  std::string weights_sha256;
};

v1::RunStatus MergeStatus(const RunSpec& spec, const RunFacts& facts);

/// Adds up the shards' counts of staleness and recomputes mean, percentiles and maximum from the
/// sums. A percentile is the lowest σ that at least this share of the counts does not exceed. The
/// window is the mean over the shards that have counted.
v1::StalenessStatus MergeStaleness(const std::vector<v1::ShardStatus>& shards);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_RUN_STATUS_H_
