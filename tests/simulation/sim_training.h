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
#include "worker/core/unit_queue.h"
#include "worker/core/work_turns.h"
#include "worker/core/worker_core.h"
#include "worker/core/worker_session.h"

namespace slipstream {

/// Trains in virtual time: carries out what a production WorkerSession decides.
///
/// One flow of control, the loop, gives the pipeline's slots their turns, computes, and waits where
/// it has to. In addition each shard has a lane, which makes the calls of all slots one after
/// another, in the order in which the loop requested them.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimTraining {
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
    BatchRanges batches;           // Those that are computed or pushed.
    Gradients::Gradient gradient;  // The gradient of its last step.

    bool is_refused = false;  // Its last push, by every shard that has answered.
    bool is_revoked = false;  // Weights that its last push was to bring will not come.

    // The calls of this slot that are under way: pulls and excuses, and pushes.
    size_t calls = 0;
    size_t pushes = 0;
  };

  /// The condition that the loop waits for, and its continuation.
  struct Waiting {
    std::function<bool()> is_over;
    std::function<void()> then;
  };

  const AlgorithmRow& algorithm() const { return RowOf(world_.scenario.run.worker.algorithm); }
  bool takes_local_steps() const { return algorithm().has_local_weights; }
  bool keeps_weights() const { return algorithm().keeps_weights; }
  WorkerCore& core() { return session_.core(); }

  // The loop.
  void TakeTurn();
  void OnTurn(const WorkerCore::Action& action);

  /// Continues at once if `is_over` is true, else once it is.
  void Await(std::function<bool()> is_over, std::function<void()> then);
  void CheckWaiting();

  /// Makes the calls that are due for the slot, and continues with the next other action.
  void Advance(uint32_t slot, const std::function<void(const WorkerCore::Action&)>& then);

  /// Continues once no push of the slot is under way.
  void AwaitPushes(uint32_t slot, std::function<void()> then);
  void AwaitUnit(uint32_t settled);
  void OnUnitResult(const absl::Status& status);
  void Heed(const WorkNews& news, const std::function<void()>& then);
  bool IsWanted(const WorkerCore::Action& action) const;
  void Compute(const BatchRanges& batches);
  void ComputeFromWeights();
  void BeginPush();

  /// With free lanes: copies the newest weights that have come into the slot's.
  absl::Status TakeNewest(uint32_t slot);
  void Push();

  /// For a worker whose model is exchanged in fragments: takes the next step and pushes what leaves
  /// then, until the rest of the push may follow.
  void StepOn(uint64_t taken);
  void PushFragment(const std::vector<ShardId>& shards, uint64_t taken);

  /// For a worker that keeps its weights: pulls those that its push is relative to, and computes
  /// what it pushes.
  void Land();
  void Finish();

  // Requests to the lanes.
  void PullFrom(uint32_t slot, const std::vector<WorkerCore::ShardPull>& pulls);
  void PushGradient(uint32_t slot, const std::vector<ShardId>& shards);
  void PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull);
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
  std::vector<UnitProgress>& progress_;
  const std::function<void(const absl::Status&)> on_end_;
  Chance chance_;
  SimUnits units_;
  WorkerSession session_;
  std::vector<Slot> slots_;
  PushEncoders encoders_;
  const Fragments fragments_;
  WorkTurns turns_;
  SimLanes lanes_;
  std::optional<SimNewestWeights> newest_;  // With free lanes.
  std::vector<PushKey> pushed_;             // By shard: the push sent last.
  std::vector<bool> is_heard_;              // By shard: whether that has been answered.
  std::optional<Waiting> waiting_;
  uint32_t turn_ = 0;  // The slot whose turn it is.
  bool is_awaiting_unit_ = false;
  bool is_closed_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_TRAINING_H_
