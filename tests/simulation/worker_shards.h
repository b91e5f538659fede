#ifndef SLIPSTREAM_TESTS_SIMULATION_WORKER_SHARDS_H_
#define SLIPSTREAM_TESTS_SIMULATION_WORKER_SHARDS_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"
#include "tests/simulation/network.h"
#include "tests/simulation/shard_lane.h"
#include "tests/simulation/sim_world.h"

namespace slipstream {

/// The shards as one member of the run knows them: the part of the model that each has, and how to
/// call it.
///
/// Thread-safe: const after construction.
class WorkerShards {
 public:
  WorkerShards(const SimWorld& world, const std::shared_ptr<Process>& process,
               const Identity& identity, absl::Duration lease, ShardMap map);

  const Identity& identity() const { return identity_; }
  const ShardMap& map() const { return map_; }
  const std::vector<ShardId>& all() const { return all_; }

  /// Returns the shard's part of an arena of the whole model.
  std::span<float> Part(std::vector<float>& whole, ShardId shard) const;
  std::span<const float> Part(const std::vector<float>& whole, ShardId shard) const;

  /// Makes one lane for each shard, in order. Training and evaluation each have their own lanes.
  std::vector<std::unique_ptr<ShardLane>> MakeLanes() const;

  /// Adds to the history that weights of `shard` have arrived in the arena.
  void NoteReceived(ShardId shard, const WeightsHeader& header,
                    const std::vector<float>& whole) const;

 private:
  const SimWorld world_;
  const std::shared_ptr<Process> process_;
  const Identity identity_;
  const absl::Duration lease_;
  const ShardMap map_;
  const std::vector<ShardId> all_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_WORKER_SHARDS_H_
