#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "deploy/lab/event_queue.h"
#include "proto/coordinator.pb.h"
#include "server/control_plane/server_orders.h"
#include "server/core/orders.h"
#include "server/core/shard/shard_machine.h"
#include "server/data_plane/push_framing.h"
#include "server/data_plane/shard.h"
#include "server/storage/buffer_pool.h"
#include "server/storage/checkpoint_store.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_checkpoints.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/sim_log.h"
#include "tests/simulation/sim_server_sync.h"
#include "tests/simulation/trace.h"

namespace slipstream {

/// A server process in virtual time: production's Shard and PushFraming, with a simulated network
/// around them. Each job takes a random time. A call is identified by the number of its stream.
///
/// Now and then the machine's state is copied and restored, which must not change anything.
///
/// With durability, it saves checkpoints to a simulated disk, and goes on from one of them where
/// the coordinator orders that. With a log, it redoes that when it comes back, and nothing leaves
/// it that follows from events which are not on the disk: neither an answer nor a report, nor what
/// an observer may see.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimShard final : private OrdersSink {
 public:
  /// `number` identifies the process among all servers of the run, from 0 on. `on_failure` is
  /// called when the process cannot go on, as its log cannot be written. It has to kill the
  /// process.
  SimShard(ShardId shard, uint64_t number, const Scenario& scenario, bool restores, SimDisk& disk,
           EventQueue& queue, Network& network, History& history, Trace& trace,
           std::function<void()> on_failure);

  ShardId id() const { return id_; }
  bool is_dead() const { return process_->is_dead; }

  /// Returns whether this is such a moment. kAny always is.
  bool IsAt(ServerFault::Moment moment) const;

  /// Whether the shard's events are recorded.
  bool is_recording() const { return log_ != nullptr; }

  /// Returns whether the disk has this checkpoint.
  bool HasSaved(const SavedVersion& which) const;
  std::vector<SavedVersion> saved() const;

  /// Ends the process. All of its connections break.
  void Kill(const ServerDeath& death);

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
    bool is_pinning = false;  // Whether the pull has an answer, which may not have left yet.

    std::optional<InitializeHeader> initialize;
    std::shared_ptr<FloatBuffer> initial;
    uint64_t initial_received = 0;
  };

  void OnPushMessage(Call& call, const grpc::ByteBuffer& message);
  BegunPush BeginPush(Call& call, const PushHeader& header);
  void OnPullMessage(Call& call, const grpc::ByteBuffer& message);
  void OnInitializeMessage(Call& call, const grpc::ByteBuffer& message);
  absl::Status TakeInitialChunk(Call& call, const InitializeChunk& chunk);

  /// Takes the newest orders, and goes on from a checkpoint if they say so.
  void TakeOrders();

  /// Opens the place for checkpoints and log, which the first orders have named. Redoes the log if
  /// an earlier process has left one of this run.
  void OpenDisk();
  bool HasToRedo() const;
  void BeginLog(uint64_t last_segment, uint64_t events_before);

  void BeginRedo();
  void Redo();

  /// Comes to the state that the disk has, and begins another segment of the log. Returns the
  /// number of events in the log before that.
  absl::StatusOr<uint64_t> RedoFromDisk();

  /// Goes on in the same generation, after so many events.
  void GoOn(uint64_t events);
  void EndOnDisk(const ServerDeath& death);

  /// Whether the coordinator may know that the shard has its initial weights.
  bool IsInitialized() const;

  /// Runs `effect` once all events so far are in the log, on the disk; never if the process ends
  /// before. Without a log, it runs at once.
  void Leave(std::function<void()> effect);

  /// Adds the event to the history, once all that it follows from is on the disk.
  void Show(Event event);

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
  void NotePush(const Call& call, const PushHeader& header, const PushReply& reply);
  void NoteOnePush(const Call& call, const PushHeader& header, const PushReply& reply,
                   bool is_later_part);
  void NoteGradient(const PushHeader& header, Values values);
  void OnAnswer(Answer answer);
  void StartNextJob();
  void FinishJob(const std::shared_ptr<ShardJob>& job);
  void NotePublished(Version version);
  void MayRestore();
  void NoteServed(const Call& call, const WeightsHeader& weights);

  /// Answers a call, or ends it, once that may leave the shard and if the call is still there.
  void Send(Call& call, Answer answer);
  void EndOnceSynced(const Call& call, const absl::Status& status);
  void End(const Call& call, const absl::Status& status);
  void FinishPull(const StreamPtr& stream, const PullRequest& pull);

  /// Ends a pull that was answered, and releases its version.
  void EndPull(const Call& call, const absl::Status& status);

  // Constant after construction.
  const ShardId id_;
  const bool saves_state_;  // Whether the run has durability.
  const bool keeps_log_;
  const std::string directory_;  // For checkpoints and log.
  const std::shared_ptr<Process> process_ = std::make_shared<Process>();
  const bool restores_;
  const bool is_encoded_;  // Whether gradients are encoded; then each is one chunk.
  const absl::Duration update_time_max_;
  const absl::Duration redo_time_max_;
  const SimLog::Options log_options_;
  const std::function<void()> on_failure_;

  EventQueue& queue_;
  Network& network_;
  History& history_;
  Trace& trace_;
  Chance chance_;
  Chance restore_chance_;  // Separate, so that restoring changes no other draw.

  SimDisk& disk_;
  std::unique_ptr<CheckpointStore> store_;  // Null before the first orders, and without durability.
  std::unique_ptr<SimLog> log_;             // Null until events are recorded. `shard_` uses it.
  bool is_redoing_ = false;
  bool has_redone_ = false;

  Shard shard_;
  std::map<uint64_t, Call> calls_;                // By stream.
  std::list<std::shared_ptr<ShardJob>> running_;  // By age.
  Version decided_{};                             // The last one in the history.

  SimSaves saves_;
  ServerOrders orders_;                // The newest.
  std::optional<Version> last_saved_;  // As ShardState has it.

  /// The generation that the first orders of this process named: they were made before it began, so
  /// a return in them was for an earlier process. Empty before the first orders.
  std::optional<Generation> generation_before_;
  SimServerSync sync_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_
