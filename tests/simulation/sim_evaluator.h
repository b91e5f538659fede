#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_EVALUATOR_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_EVALUATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "tests/simulation/coordinator_calls.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/shard_lane.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/worker_shards.h"
#include "worker/core/weights_reading.h"
#include "worker/member/heartbeat_news.h"

namespace slipstream {

/// Measures the model beside training: reads the weights of all shards, as WeightsReading says, and
/// reports.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimEvaluator {
 public:
  /// `on_failure` is called with the reason why the worker cannot go on. All arguments must outlive
  /// it.
  SimEvaluator(const SimWorld& world, const std::shared_ptr<Process>& process,
               const WorkerShards& shards, CoordinatorCalls& calls,
               std::function<void(const absl::Status&)> on_failure);

  /// Has no effect if the order was carried out already, or if another evaluation is under way.
  void OnOrder(const HeartbeatNews::Order& order);

  bool is_reading() const { return evaluation_.has_value(); }
  void Close();

 private:
  /// The current evaluation.
  struct Evaluation {
    HeartbeatNews::Order order;
    WeightsReading reading;
    std::vector<float> weights;
    size_t lanes_busy = 0;
  };

  void Read();
  void OnRead(ShardId shard, const absl::StatusOr<std::optional<WeightsHeader>>& weights);
  void Report();

  const SimWorld world_;
  const std::shared_ptr<Process> process_;
  const WorkerShards& shards_;
  CoordinatorCalls& calls_;
  const std::function<void(const absl::Status&)> on_failure_;
  std::vector<std::unique_ptr<ShardLane>> lanes_;
  std::optional<Evaluation> evaluation_;
  uint64_t last_ = 0;
  bool is_closed_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_EVALUATOR_H_
