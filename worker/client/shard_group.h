#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_lanes.h"
#include "worker/client/shard_options.h"

namespace slipstream {

/// All shards of a model, each with a client in a lane of its own.
///
/// A failure in one lane cancels the calls in the others, because the worker cannot continue
/// without that shard.
///
/// Not thread-safe: one owner; other threads may throw its CancelSwitch.
class ShardGroup {
 public:
  /// The work that a lane does with its shard.
  using Work = std::function<absl::Status(ShardClient&)>;

  /// `servers`: the addresses in the order of the map's shards. `aggregators`: those of the
  /// worker's group, in the same order; empty if it has none. `cancel` must outlive the group.
  ShardGroup(const std::vector<std::string>& servers, const ShardMap& map,
             const ShardOptions& options, const Sleeper& sleeper, CancelSwitch& cancel,
             const std::vector<std::string>& aggregators = {});

  /// Calls `work` for each of `shards` in parallel. A failure cancels the calls of the others; the
  /// first failure is returned.
  absl::Status Run(const std::vector<ShardId>& shards, const Work& work);

  /// Calls `work` for each shard in parallel, waits for all and returns the first failure. The
  /// group can be used on.
  absl::Status Try(const Work& work);

  /// Queues `work` in the lane of each of `shards`, behind its earlier work, and returns at once.
  /// If `work` fails, it calls EndCalls itself before it reports the failure to anyone.
  void Start(const std::vector<ShardId>& shards, Work work);

  /// Cancels the calls under way on all shards, and every later one.
  void EndCalls() { cancel_.Throw(); }

  const ShardMap& map() const { return map_; }
  const std::vector<ShardId>& all() const { return all_; }

 private:
  ShardClient& client(ShardId shard) { return *clients_.at(Value(shard)); }

  // Constant after construction.
  const ShardMap map_;
  std::vector<ShardId> all_;

  CancelSwitch& cancel_;
  std::vector<std::unique_ptr<ShardClient>> clients_;  // Each is used by its lane.
  ShardLanes lanes_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_
