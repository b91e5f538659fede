#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_TRAINING_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/coordinator_calls.h"
#include "tests/simulation/gradients.h"
#include "tests/simulation/network.h"
#include "tests/simulation/shard_lane.h"
#include "tests/simulation/sim_heartbeat.h"
#include "tests/simulation/sim_lanes.h"
#include "tests/simulation/sim_newest_weights.h"
#include "tests/simulation/sim_units.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/worker_shards.h"
#include "worker/client/push_encoders.h"
#include "worker/core/fragments.h"
#include "worker/core/session_flow.h"
#include "worker/core/unit_queue.h"
#include "worker/core/worker_core.h"
#include "worker/core/worker_session.h"

namespace slipstream {

/// Trains in the simulation, as the worker's session decides.
///
/// Beside the flow of control, each shard has a lane, which makes the calls of all slots one after
/// another, in the order in which the loop requested them.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimTraining final : public SessionFlow {
 public:
  /// `number` identifies the process within the run. `progress` is kept up to date. `on_end` is
  /// called once, when nothing is left to do, or with the reason why the worker cannot go on. All
  /// arguments must outlive it.
  SimTraining(const SimWorld& world, const std::shared_ptr<Process>& process,
              const WorkerShards& shards, CoordinatorCalls& calls, const SimHeartbeat& heartbeat,
              uint64_t number, std::vector<UnitProgress>& progress,
              std::function<void(const absl::Status&)> on_end);

  /// Sends the initial weights to all shards, and then calls `done`.
  void Initialize(uint64_t grant, std::function<void(const absl::Status&)> done);

  void Start() { TakeTurn(); }
  void Close();
  std::string Describe() const;

 private:
  struct Slot {
    std::vector<float> weights;
    Gradients::Gradient gradient;  // The gradient of its last step.

    bool is_refused = false;  // Its last push, by every shard that has answered.
    bool is_revoked = false;  // Weights that its last push was to bring will not come.
  };

  const AlgorithmRow& algorithm() const { return RowOf(world_.scenario.run.worker.algorithm); }
  bool takes_local_steps() const { return algorithm().has_local_weights; }
  bool keeps_weights() const { return algorithm().keeps_weights; }

  // See SessionFlow.
  void HeedOrders() override;
  void PullFrom(uint32_t slot, const std::vector<WorkerCore::ShardPull>& pulls) override;
  void PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull) override;
  void Compute() override;
  void Ask(const WorkWish& wish) override { units_.Ask(wish); }
  std::optional<WorkNews> TakeNews() override { return units_.Take(); }
  bool FollowNewest() override { return newest_->Follow(); }
  absl::Status TakeNewest(uint32_t slot) override;
  void RestNewest() override { newest_->Rest(); }
  void Finish() override;
  void Fail(const absl::Status& status) override { on_end_(status); }

  /// Continues once no push of the slot is under way.
  void AwaitPushes(uint32_t slot, std::function<void()> then);
  void ComputeFromWeights();
  void BeginPush();

  void Push();

  /// For a worker whose model is exchanged in fragments: takes the next step and pushes what leaves
  /// then, until the rest of the push may follow.
  void StepOn(uint64_t taken);
  void PushFragment(const std::vector<ShardId>& shards, uint64_t taken);

  /// For a worker that keeps its weights: pulls those that its push is relative to, and computes
  /// what it pushes.
  void Land();

  // Requests to the lanes.
  void PushGradient(uint32_t slot, const std::vector<ShardId>& shards);
  void Exchange(ShardLane& lane, ShardId shard, uint32_t slot, const PushHeader& header,
                const Gradients::Gradient* gradient, ShardLane::Done done);
  absl::Status OnAnswer(ShardId shard, uint32_t slot, bool is_push, const ExchangeAnswer& answer);

  /// Makes a call, which `under_way` counts. `on_weights`: is given the header of weights that have
  /// arrived.
  void Call(ShardId shard, size_t& under_way, SimLanes::Begin begin,
            std::function<absl::Status(const WeightsHeader&)> on_weights);

  const SimWorld world_;
  const std::shared_ptr<Process> process_;
  const WorkerShards& shards_;
  const SimHeartbeat& heartbeat_;
  const std::function<void(const absl::Status&)> on_end_;
  Chance chance_;
  SimUnits units_;
  std::vector<Slot> slots_;
  PushEncoders encoders_;
  const Fragments fragments_;
  SimLanes lanes_;
  std::optional<SimNewestWeights> newest_;  // With free lanes.
  std::vector<PushKey> pushed_;             // By shard: the push sent last.
  std::vector<bool> is_heard_;              // By shard: whether that has been answered.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_TRAINING_H_
