#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_READER_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/shard_map.h"
#include "proto/coordinator.pb.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/coordinator_calls.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/shard_lane.h"
#include "tests/simulation/sim_world.h"

namespace slipstream {

/// One process that reads the versions of shard 0, and that workers wait for.
///
/// Not thread-safe: one owner. It must outlive the queue's last event.
class SimReader {
 public:
  /// `number` identifies the process within the run.
  SimReader(const SimWorld& world, uint64_t number, const ReaderPlan& plan);

  /// Begins, at the time of the plan.
  void Start();

  bool is_dead() const { return process_->is_dead; }
  std::string Describe() const;

 private:
  void Tell();
  void OnTold(const v1::FollowReply& reply);
  void Read();
  void OnRead(const absl::StatusOr<std::optional<WeightsHeader>>& weights);
  void End();

  const SimWorld world_;
  const uint64_t number_;
  const ReaderPlan plan_;
  const std::shared_ptr<Process> process_;
  Chance chance_;
  CoordinatorCalls calls_;
  std::unique_ptr<ShardLane> lane_;
  std::optional<ShardMap> map_;
  std::vector<float> weights_;
  std::optional<GenerationVersion> held_;
  bool is_over_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_READER_H_
