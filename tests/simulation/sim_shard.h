#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "proto/coordinator.pb.h"
#include "server/core/coordinator_orders.h"
#include "server/core/shard_machine.h"
#include "server/service/push_framing.h"
#include "server/service/server_orders.h"
#include "server/service/shard.h"
#include "server/storage/buffer_pool.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_checkpoints.h"
#include "tests/simulation/sim_server_sync.h"
#include "tests/simulation/trace.h"

namespace slipstream {

/// A server process in virtual time: production's Shard and PushFraming, with a simulated network
/// around them. Each job takes a random time. A call is identified by the number of its stream.
///
/// Now and then the machine's state is copied and restored, which must not change anything.
///
/// With durability, it saves checkpoints to a simulated disk, and goes on from one of them where
/// the coordinator orders that.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimShard final : private OrdersSink {
 public:
  /// `number` identifies the process among all servers of the run, from 0 on.
  SimShard(ShardId shard, uint64_t number, const Scenario& scenario, bool restores,
           SimCheckpoints& disk, EventQueue& queue, Network& network, History& history,
           Trace& trace);

  ShardId id() const { return id_; }
  bool is_dead() const { return process_->is_dead; }
  bool is_writing() const { return saves_.is_writing(); }

  /// Ends the process. All of its connections break.
  void Kill();

  void OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message);
  void OnCancel(const StreamPtr& stream);
  void OnSent(const StreamPtr& stream);

  /// Returns true once the run is over and the coordinator has let this server go.
  bool may_exit() const { return sync_.may_exit(); }
  ShardEnd End() const;
  std::string Describe() const;
  const ShardMachine& machine() const { return shard_.machine(); }

 private:
  void OnOrders(const ServerOrders& orders) override;
  void OnCoordinatorAsked() override { shard_.OnCoordinatorAsked(); }
  void OnCoordinatorAnswered() override { shard_.OnCoordinatorAnswered(); }
  void Describe(v1::SyncServerRequest& request) override;

  /// The state of one call.
  struct Call {
    StreamPtr stream;

    PushFraming pushes;
    std::optional<PushHeader> push;  // The push that arrives or is being answered.

    std::optional<PullRequest> pull;
    bool is_pinning = false;

    std::optional<InitializeHeader> initialize;
    std::shared_ptr<FloatBuffer> initial;
    uint64_t initial_received = 0;
  };

  void OnPushMessage(Call& call, const grpc::ByteBuffer& message);
  BegunPush BeginPush(Call& call, const PushHeader& header);
  void OnPullMessage(Call& call, const grpc::ByteBuffer& message);
  void OnInitializeMessage(Call& call, const grpc::ByteBuffer& message);
  absl::Status TakeInitialChunk(Call& call, const InitializeChunk& chunk);

  /// Returns the order to go on from a checkpoint that this process has, if there is one to obey.
  const ShardReturn* FindReturn(const ServerOrders& orders) const;

  /// Ends all calls, lets the jobs end, and goes on from the checkpoint.
  void Return(const ModelOrders& model, const ShardReturn& order);
  void EndAllCalls();

  bool IsDrained() const;

  /// Notes that the machine has ordered to save its state.
  void NoteSave();

  /// Handles the result of an event: adds it to the history, and sends answers to calls that
  /// waited.
  void Absorb(ShardResult result);
  void NotePush(const PushHeader& header, const PushReply& reply);
  void NoteOnePush(const PushHeader& header, const PushReply& reply, bool is_later_part);
  void NoteGradient(const PushHeader& header, Values values);
  void OnAnswer(const Delivery& delivery);
  void StartNextJob();
  void FinishJob(const std::shared_ptr<Shard::Job>& job);
  void NotePublished(Version version);
  void MayRestore();
  void NoteServed(const Call& call, const ServedWeights& weights);
  void Send(Call& call, Answer answer);
  void End(const Call& call, const absl::Status& status);
  void FinishPull(const StreamPtr& stream, const PullRequest& pull);

  /// Ends a pull that was answered, and releases its version.
  void EndPull(const Call& call, const absl::Status& status);

  // Constant after construction.
  const ShardId id_;
  const bool saves_state_;  // Whether the run has durability.
  const std::shared_ptr<Process> process_ = std::make_shared<Process>();
  const bool restores_;
  const bool is_encoded_;  // Whether gradients are encoded; then each is one chunk.
  const absl::Duration update_time_max_;

  EventQueue& queue_;
  Network& network_;
  History& history_;
  Trace& trace_;
  Chance chance_;
  Chance restore_chance_;  // Separate, so that restoring changes no other draw.
  Shard shard_;
  std::map<uint64_t, Call> calls_;                  // By stream.
  std::list<std::shared_ptr<Shard::Job>> running_;  // By age.
  Version decided_{};                               // The last one in the history.

  SimCheckpoints& disk_;
  SimSaves saves_;
  std::optional<Version> last_saved_;  // As ShardState has it.

  /// The life that the first orders of this process named: they were made before it began, so a
  /// return in them was for an earlier process. Empty before the first orders.
  std::optional<Life> life_before_;
  SimServerSync sync_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_
