#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_ENGINE_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_ENGINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/coordinator_orders.h"
#include "server/core/shard_core.h"
#include "server/service/push_assembly.h"
#include "server/service/shard_engine.h"
#include "server/service/shard_job.h"
#include "server/service/update_path.h"
#include "server/storage/buffer_pool.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/history.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/shard_decider.h"
#include "tests/simulation/trace.h"

namespace slipstream {

/// One shard in virtual time, as ShardEngine runs it: asks the core, lets production's kernels do
/// what it orders, each job for a drawn while, and answers calls. A call is known by the number of
/// its stream.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it the event queue's last event.
class SimEngine {
 public:
  /// The call gets this answer, or is refused.
  using OnAnswer = std::function<void(uint64_t stream, absl::StatusOr<Answer> answer)>;

  SimEngine(ShardId shard, const Scenario& scenario, PlantedBug bug, EventQueue& queue,
            Chance& chance, History& history, Trace& trace, OnAnswer on_answer);

  void OnOrders(const ServerOrders& orders);

  /// A buffer for the initial weights, or why they are not taken from this client.
  absl::StatusOr<std::shared_ptr<FloatBuffer>> BeginInitialize(const InitializeHeader& header);
  absl::Status FinishInitialize(const InitializeHeader& header, Weights weights);

  void Pull(uint64_t stream, const PullRequest& request);
  void FinishPull(ShardCore::Reader reader);

  /// A refusal, or nothing, and then exactly one of FinishPush and AbandonPush has to follow.
  std::optional<PushReply> BeginPush(const PushHeader& header);
  void FinishPush(uint64_t stream, PushAssembly push);
  void AbandonPush(const PushHeader& header);

  /// The call's client is gone; if it waits, it gets no answer.
  void Cancel(uint64_t stream);

  const ShardDecider& core() const { return *core_; }

  /// Under the grant of the newest orders.
  bool is_initialized() const { return orders_.grant != 0 && initialized_grant_ == orders_.grant; }
  ShardEnd End() const;
  std::string Describe() const;

 private:
  struct Parked {
    uint64_t stream = 0;
    std::optional<PushReply> push;
    bool wants_weights = false;
  };

  void TakeModel(const ServerOrders& orders);
  absl::Status CheckInitializer(const InitializeHeader& header) const;
  void AnswerNow(const std::variant<Serve, Park>& outcome, const Parked& parked);
  void Give(const Parked& parked, Version version, const std::optional<RoundWork>& work);
  void Absorb(const Effects& effects);
  void StartNextJob();
  void FinishJob();
  PushKey KeyOf(const PushHeader& header) const;

  // Constant after construction.
  const ShardId shard_;
  const Scenario& scenario_;

  EventQueue& queue_;
  Chance& chance_;
  History& history_;
  Trace& trace_;
  const OnAnswer on_answer_;

  std::unique_ptr<ShardDecider> core_;
  std::unique_ptr<UpdatePath> path_;
  ServerOrders orders_;
  uint64_t initialized_grant_ = 0;
  Weights published_;
  std::map<PushId, PushPayload> held_;
  std::map<Ticket, Parked> parked_;
  std::deque<ShardJob> jobs_;
  bool is_working_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_ENGINE_H_
