#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_WORKER_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "proto/coordinator.pb.h"
#include "tests/simulation/coordinator_calls.h"
#include "tests/simulation/network.h"
#include "tests/simulation/sim_evaluator.h"
#include "tests/simulation/sim_heartbeat.h"
#include "tests/simulation/sim_training.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/worker_shards.h"
#include "worker/core/unit_queue.h"
#include "worker/member/model_asking.h"

namespace slipstream {

/// One worker process in virtual time, with its faults: it joins, trains and leaves.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimWorker {
 public:
  /// `number` identifies the process within the run. Without `asked` it takes the lowest free id.
  /// `on_end` is called when the process ends by itself.
  SimWorker(const SimWorld& world, uint64_t number, std::optional<WorkerId> asked,
            std::function<void(const absl::Status&)> on_end);

  void Start();
  void Crash();
  void Freeze(absl::Duration duration);

  bool is_dead() const { return process_->is_dead; }
  std::optional<WorkerId> id() const { return asked_; }
  std::string Describe() const;

 private:
  void PrepareModel();
  void OnPrepared(const PreparedModel& model);
  void JoinShards(const ShardMap& map);
  void Initialize(uint64_t grant);
  void FinishInitialization();
  void OnInitialized(const absl::Status& status);
  void OnTrained(const absl::Status& status);
  void OnNews();

  void Fail(const absl::Status& status);
  void Leave(const absl::Status& status);
  void End(const absl::Status& status);

  const SimWorld world_;
  const uint64_t number_;
  std::optional<WorkerId> asked_;
  const std::function<void(const absl::Status&)> on_end_;
  const std::shared_ptr<Process> process_ = std::make_shared<Process>();
  bool is_leaving_ = false;

  Identity identity_;
  absl::Duration lease_;
  std::optional<ModelAsking> asking_;  // Once it has registered.
  std::vector<UnitProgress> progress_;
  CoordinatorCalls calls_;
  SimHeartbeat heartbeat_;

  // Set once the model is known.
  std::optional<WorkerShards> shards_;
  std::optional<SimTraining> training_;
  std::optional<SimEvaluator> evaluator_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_WORKER_H_
