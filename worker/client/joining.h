#ifndef SLIPSTREAM_WORKER_CLIENT_JOINING_H_
#define SLIPSTREAM_WORKER_CLIENT_JOINING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/server_addresses.h"
#include "worker/client/shard_options.h"
#include "worker/core/unit_queue.h"
#include "worker/member/model_asking.h"

namespace slipstream {

/// Returns the name of this computer, for people; "unknown" if it has none.
std::string HostName();

/// How a worker joins a run, in three calls: it registers, proposes its model and, if it is granted
/// the initialisation, sends the initial weights.

/// The answer to a registration.
struct JoinedRun {
  Identity identity;

  /// The canonical run.yaml of the run.
  std::string settings;

  /// The addresses, host:port, in the order of shards, at the time of the answer.
  std::vector<std::string> servers;

  /// The addresses of the aggregators of the worker's group, in the order of shards; empty if it
  /// has none.
  std::vector<std::string> aggregators;
  absl::Duration lease;
};

/// Registers under `worker`, or under the lowest free id. From then on `coordinator` repeats calls
/// for as long as a member should (MembersPatience). Fails with INTERNAL if the answer is
/// incomplete.
absl::StatusOr<JoinedRun> JoinRun(CoordinatorClient& coordinator, std::optional<WorkerId> worker);

/// Returns how a member talks to the shards of its run. `addresses`: where the servers are now;
/// must outlive all who use the options.
ShardOptions ShardOptionsOf(const JoinedRun& joined, const ServerAddresses& addresses,
                            const RunSpec& settings, const ShardMap& map,
                            const std::shared_ptr<grpc::ChannelCredentials>& credentials);

/// Leaves the run (LeaveRequestOf).
absl::Status LeaveRun(const CoordinatorClient& coordinator, const Identity& identity,
                      const std::string& failure, bool ends_run,
                      const std::vector<UnitProgress>& progress);

/// Returns the failure to report for a worker that was fenced, as `fenced` says. If another process
/// has registered under its id since, this is INVALID_ARGUMENT and names that process: to register
/// again would only fence it in turn. Otherwise, and also if the coordinator (which is asked once)
/// does not answer, this is `fenced` unchanged.
absl::Status WhyFenced(const CoordinatorClient& coordinator, const Identity& identity,
                       const absl::Status& fenced);

/// What a worker does on the way to a model that is ready.
struct ModelSteps {
  /// Returns true once the worker is to stop.
  std::function<bool()> cancelled;

  /// Takes how the model is cut, before `send` and before the model is ready.
  std::function<absl::Status(ShardMap map)> take_map;

  /// Sends the initial weights to all shards under `grant`.
  std::function<absl::Status(uint64_t grant)> send;
};

/// Waits until the model is ready, and initialises it each time that this worker is told to
/// (ModelAsking). Returns CANCELLED once `steps` say so.
absl::Status PrepareModel(const CoordinatorClient& coordinator, const Identity& identity,
                          const ModelProposal& proposal, const ModelSteps& steps);

/// Where workers add up their gradients themselves: leaves the bytes by which the others reach this
/// one.
absl::Status LeaveContact(const CoordinatorClient& coordinator, const Identity& identity,
                          const std::string& contact);

/// Waits for the bytes by which `other` is reached. Returns CANCELLED once `cancelled` returns
/// true.
absl::StatusOr<std::string> AwaitContact(const CoordinatorClient& coordinator,
                                         const Identity& identity, WorkerId other,
                                         const std::function<bool()>& cancelled);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_JOINING_H_
