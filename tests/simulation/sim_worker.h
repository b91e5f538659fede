#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_WORKER_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"
#include "proto/coordinator.pb.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/gradients.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/shard_lane.h"
#include "tests/simulation/trace.h"
#include "worker/client/retry_schedule.h"
#include "worker/core/worker_core.h"

namespace slipstream {

/// One worker process around a production WorkerCore in virtual time: what WorkerProgram,
/// ParameterClient, TrainingLoop, UnitFetcher, Heartbeat and Evaluator do with threads and gRPC.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it the event queue's last event.
class SimWorker {
 public:
  struct World {
    const Scenario& scenario;
    EventQueue& queue;
    Network& network;
    History& history;
    Trace& trace;
    Gradients& gradients;
  };

  /// `number` tells the processes of a run apart. Without `asked` it takes the lowest free id.
  /// `on_end` is called when the process ends by itself.
  SimWorker(const World& world, uint64_t number, std::optional<WorkerId> asked,
            std::function<void(const absl::Status&)> on_end);

  void Start();
  void Crash();
  void Freeze(absl::Duration duration);

  bool is_dead() const { return process_->is_dead; }
  std::optional<WorkerId> id() const { return asked_; }
  std::string Describe() const;

 private:
  template <typename Reply, typename Request>
  void Call(Method method, const Request& request,
            std::function<void(const absl::StatusOr<Reply>&)> done);
  void Try(Method method, const std::string& request,
           const std::shared_ptr<std::optional<RetrySchedule>>& schedule,
           std::function<void(const absl::StatusOr<std::string>&)> done);

  // Joining.
  void PrepareModel();
  void OnPrepared(const v1::PrepareModelReply& reply);
  void Initialize(uint64_t grant);
  void FinishInitialization(uint64_t grant);

  // Training.
  void Advance();
  void Pull(const WorkerCore::PullShards& action);
  void Compute(const WorkerCore::ComputeBatch& action);
  void Push();
  void Exchange(const std::vector<ShardId>& shards, const Gradients::Gradient& gradient, bool pull,
                const std::function<void()>& done);
  bool IsRefusedByAll() const;
  void OnExchanged(const std::vector<ShardId>& shards, const std::function<void()>& done);
  void BeginLanes(size_t lanes, std::function<void()> done);
  ShardLane::Done LaneDone(ShardId shard);
  absl::Status Judge(ShardId shard, const ShardLane::Answer& answer) const;
  std::span<float> Part(std::vector<float>& whole, ShardId shard) const;
  void NoteReceived(ShardId shard, const WeightsHeader& header, std::span<const float> weights);
  std::vector<ShardId> AllShards() const;
  std::vector<std::unique_ptr<ShardLane>> MakeLanes() const;

  // Units.
  void AskUnit();
  void FetchUnit();
  void TakeUnit();

  // Heartbeats and what they bring.
  void BeatLater();
  void Beat();
  void OnBeat(const v1::HeartbeatReply& reply);
  void Evaluate(uint64_t order, bool is_final);
  void ReadWeights(const std::vector<ShardId>& shards, Version min_version, int tries_left);
  void OnRead(ShardId shard, const absl::StatusOr<ShardLane::Answer>& answer, int tries_left);
  void ReadOn(int tries_left);
  void Report();

  void Fail(const absl::Status& status);
  void Leave(const absl::Status& status);
  void End(const absl::Status& status);

  World world_;
  const uint64_t number_;
  std::optional<WorkerId> asked_;
  const std::function<void(const absl::Status&)> on_end_;
  const std::shared_ptr<Process> process_ = std::make_shared<Process>();
  Chance chance_;
  uint64_t calls_ = 0;
  bool is_leaving_ = false;

  Identity identity_;
  absl::Duration lease_;
  std::optional<ShardMap> map_;
  std::optional<WorkerCore> core_;
  std::vector<std::unique_ptr<ShardLane>> lanes_;
  std::vector<float> weights_;
  Gradients::Gradient gradient_;  // Of the step under way.

  // Calls of several lanes side by side.
  size_t lanes_busy_ = 0;
  std::vector<ShardLane::Answer> answers_;  // By shard.
  std::function<void()> lanes_done_;

  bool is_asking_ = false;
  bool is_awaiting_unit_ = false;
  std::optional<std::optional<WorkUnit>> unit_;
  uint64_t newest_unit_ = 0;
  std::vector<UnitProgress> progress_;

  bool work_ends_ = false;
  bool is_hurried_ = false;  // Nothing is left but to hear of the end.
  std::optional<Phase> phase_;

  // The evaluation under way.
  struct Reading {
    uint64_t order = 0;
    bool is_final = false;
    std::vector<float> weights;
    std::vector<Version> versions;
    size_t lanes_busy = 0;
  };
  std::optional<Reading> reading_;
  std::vector<std::unique_ptr<ShardLane>> reading_lanes_;
  uint64_t last_evaluation_ = 0;
};

template <typename Reply, typename Request>
void SimWorker::Call(Method method, const Request& request,
                     std::function<void(const absl::StatusOr<Reply>&)> done) {
  Try(method, request.SerializeAsString(), std::make_shared<std::optional<RetrySchedule>>(),
      [done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
        if (!bytes.ok()) return done(bytes.status());
        Reply reply;
        PS_CHECK(reply.ParseFromString(*bytes));
        done(reply);
      });
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_WORKER_H_
