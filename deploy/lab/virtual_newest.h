#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_NEWEST_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_NEWEST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "deploy/lab/lab_context.h"
#include "deploy/lab/virtual_calls.h"
#include "deploy/lab/virtual_process.h"

namespace slipstream {

/// Follows the versions of all shards beside a worker's pushes, in virtual time, as NewestWeights
/// does.
///
/// Not thread-safe: one owner.
class VirtualNewest {
 public:
  /// The weights of one shard that have come.
  struct Taken {
    WeightsHeader header;
    Weights weights;
  };

  /// `on_news` is called when weights have come, and `on_failure` if a pull fails. All arguments
  /// must outlive it.
  VirtualNewest(const LabContext& lab, VirtualProcess& process, const Identity& identity,
                uint64_t shard_map, std::function<void()> on_news,
                std::function<void(const absl::Status&)> on_failure);

  /// Lets lanes go on that stand still. Returns whether weights of each shard have come.
  bool Follow();

  /// Returns the newest weights of the shard, if they are newer than `held` (absent: if there are
  /// any). The lane goes on if it stands still.
  std::optional<Taken> Take(ShardId shard,
                            const std::optional<std::pair<Generation, Version>>& held);

  /// Lets no lane begin another pull before the next Take.
  void Rest() { is_resting_ = true; }

 private:
  struct Lane {
    std::optional<Taken> newest;
    bool stands_still = true;  // Until the next Take.
  };

  void GoOn(ShardId shard);
  void Pull(ShardId shard);
  void OnPulled(ShardId shard, const Answer& answer);

  const Identity identity_;
  const uint64_t shard_map_;
  const std::function<void()> on_news_;
  VirtualCalls calls_;
  std::vector<Lane> lanes_;  // By shard.
  bool is_resting_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_NEWEST_H_
