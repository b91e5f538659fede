#ifndef SLIPSTREAM_WORKER_CLIENT_MEMBERSHIP_H_
#define SLIPSTREAM_WORKER_CLIENT_MEMBERSHIP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/coordinator_client.h"

namespace slipstream {

/// How a worker joins a run, in three calls: it registers, names its model and, if it is granted
/// that, initialises it.

/// What registration answers.
struct Membership {
  Identity identity;

  /// Canonical run.yaml of the run.
  std::string settings;

  /// host:port in the order of shards.
  std::vector<std::string> servers;
  absl::Duration lease;
};

/// Registers under `worker`, or the lowest free id; `coordinator` then is as patient as a member
/// is. Fails with INTERNAL if the answer makes no sense.
absl::StatusOr<Membership> JoinRun(CoordinatorClient& coordinator, std::optional<WorkerId> worker);

/// What a worker that was fenced, as `fenced` says, is to be told: INVALID_ARGUMENT naming who has
/// its id if another process has registered under it since, for to register again would only fence
/// that one. Else `fenced` as it is, also if the coordinator, which is asked once, does not say.
absl::Status WhyFenced(const CoordinatorClient& coordinator, const Identity& identity,
                       const absl::Status& fenced);

/// What this worker trains; the same for all workers of a run.
struct ModelProposal {
  TensorLayout layout;
  uint64_t examples = 0;
  uint64_t data_fingerprint = 0;
};

struct PreparedModel {
  ShardMap map;

  /// Send the initial weights to all shards under this grant, call FinishInitialization, and ask
  /// again. 0: the model is ready to be pulled.
  uint64_t grant = 0;
};

/// Waits until the model is ready or this worker is to initialise it; until `cancelled` at most.
absl::StatusOr<PreparedModel> AwaitModel(const CoordinatorClient& coordinator,
                                         const Identity& identity, const ModelProposal& proposal,
                                         const std::function<bool()>& cancelled);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_MEMBERSHIP_H_
