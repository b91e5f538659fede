#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_NEWEST_WEIGHTS_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_NEWEST_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/shard_lane.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/worker_shards.h"

namespace slipstream {

/// Follows the versions of all shards beside a worker's pushes, in virtual time.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimNewestWeights {
 public:
  /// `on_pulled` is called when a lane has pulled, with the reason if it has failed. All arguments
  /// must outlive it.
  SimNewestWeights(const SimWorld& world, const std::shared_ptr<Process>& process,
                   const WorkerShards& shards, std::function<void(const absl::Status&)> on_pulled);

  /// Lets lanes go on that stand still. Returns whether weights of each shard have come.
  bool Follow();

  /// Copies the newest weights of the shard into its part of `weights`, if they are newer than
  /// `held` (absent: if there are any), and returns their header. The lane goes on if it stands
  /// still.
  std::optional<WeightsHeader> Take(ShardId shard, const std::optional<GenerationVersion>& held,
                                    std::vector<float>& weights);

  /// The newest version of each shard that has come; 0 before the first.
  std::vector<GenerationVersion> versions() const;

  /// Lets no lane begin another pull before the next Take.
  void Rest() { is_resting_ = true; }

  void Close();

 private:
  struct Lane {
    std::unique_ptr<ShardLane> shard;
    std::optional<WeightsHeader> newest;
    bool stands_still = true;  // Until the next Take.
  };

  void GoOn(ShardId shard);
  void Pull(ShardId shard);
  void OnPulled(ShardId shard, const absl::StatusOr<std::optional<WeightsHeader>>& weights);

  const SimWorld world_;
  const std::shared_ptr<Process> process_;
  const WorkerShards& shards_;
  const std::function<void(const absl::Status&)> on_pulled_;
  std::vector<Lane> lanes_;  // By shard.
  std::vector<float> arriving_;
  std::vector<float> newest_;
  bool is_resting_ = false;
  bool is_closed_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_NEWEST_WEIGHTS_H_
