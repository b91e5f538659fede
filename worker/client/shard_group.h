#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/run/run_spec.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/retry_schedule.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_exchange.h"
#include "worker/client/shard_lanes.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

/// All shards of a model: their calls side by side, each repeated until it is answered for good or
/// the shard has been out of reach for too long.
///
/// A failure in one lane ends the calls in the others, because the worker cannot go on without it.
///
/// Not thread-safe: one owner; other threads may throw its switch.
class ShardGroup {
 public:
  struct Options {
    ShardClient::Options client;
    RetryOptions retry;

    /// The encoding of gradients: fp32 where the client has an arena to share.
    Encoding push_encoding = Encoding::kFp32;

    /// With shards of at most so many bytes, or of one message, nothing is to overlap: the thread
    /// that computes exchanges by itself.
    size_t alone_bytes_max = 0;

    /// A shard that answers RETRY_LATER for this long is given up.
    absl::Duration overload_timeout = absl::Minutes(10);

    /// Seeds the jitter of waits.
    uint64_t seed = 1;
  };

  /// What a run's settings say of them.
  static Options OptionsFor(const RunSpec& settings, const ShardMap& map);

  /// `servers` in the order of the map's shards. `cancel` must outlive the group.
  ShardGroup(const std::vector<std::string>& servers, const ShardMap& map, const Options& options,
             Sleeper sleeper, CancelSwitch& cancel);

  /// Calls `work` for each of `shards`, side by side. A failure ends the calls of the others; the
  /// first is returned.
  absl::Status Run(const std::vector<ShardId>& shards, const ShardLanes::Work& work);

  /// Gives `work` to the lane of each shard, behind what it has to do already, and returns at once.
  /// On a failure `work` calls EndCalls itself, before it lets anyone know.
  void Start(ShardLanes::Work work);

  /// Ends what is under way on all shards, for good.
  void EndCalls();

  // In a lane, for its shard:

  absl::Status Initialize(ShardId shard, const InitializeHeader& header,
                          std::span<const float> weights);

  /// Returns the header of the weights that are in place.
  absl::StatusOr<WeightsHeader> Pull(ShardId shard, const PullRequest& request,
                                     WeightsArrival weights);

  /// The same push goes out again after a broken stream or RETRY_LATER, so what it is answered in
  /// the end is anything but that. The gradient may be changed afterwards. ABORTED if its feed was;
  /// then some of it may still be read, but for no push that can be complete.
  absl::Status Exchange(ShardId shard, ShardExchange& exchange);

  /// A place for the weights of a shard in an arena of the whole model's. `listener` may be null.
  WeightsArrival ArrivalOf(ShardId shard, std::span<float> weights,
                           WeightsListener* listener) const;

  const ShardMap& map() const { return map_; }
  const std::vector<ShardId>& all() const { return all_; }

 private:
  /// Whether the shard was reached by a try that failed after `tried`: then it was not away, and if
  /// it is now, that has just begun.
  bool WasThere(ShardId shard, const absl::Status& failure, absl::Duration tried);

  /// Calls `once` until it succeeds or fails for good.
  absl::Status Retry(ShardId shard, const std::function<absl::Status()>& once);
  absl::Status Pause(ShardId shard, absl::Duration wait);
  ShardClient& client(ShardId shard) { return *clients_.at(Value(shard)); }

  // Constant after construction.
  const ShardMap map_;
  const Options options_;
  const Sleeper sleeper_;
  std::vector<ShardId> all_;

  CancelSwitch& cancel_;
  std::vector<std::unique_ptr<ShardClient>> clients_;  // Each used by its lane.
  ShardLanes lanes_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_
