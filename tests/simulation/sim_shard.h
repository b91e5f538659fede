#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "server/core/coordinator_orders.h"
#include "server/core/shard_core.h"
#include "server/service/push_assembly.h"
#include "server/service/shard_job.h"
#include "server/service/update_path.h"
#include "server/storage/buffer_pool.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/shard_decider.h"
#include "tests/simulation/trace.h"

namespace slipstream {

/// The shell of a production shard core in virtual time: what ShardEngine, the calls of
/// ShardService and ServerSync do with threads and gRPC. The payloads' way is production's, from
/// the received bytes through PushAssembly to the kernels of UpdatePath.
///
/// Not thread-safe: one owner. All arguments must outlive it.
class SimShard {
 public:
  SimShard(ShardId shard, const Scenario& scenario, PlantedBug bug, EventQueue& queue,
           Network& network, History& history, Trace& trace);

  void OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message);
  void OnCancel(const StreamPtr& stream);
  void OnSent(const StreamPtr& stream);

  /// True once the run is over and the coordinator let this server go.
  bool may_exit() const { return orders_.may_exit; }
  ShardEnd End() const;
  std::string Describe() const;

 private:
  /// What is known of one call.
  struct Call {
    StreamPtr stream;

    // A push on its way: its values so far, or those of a refused one, to be thrown away.
    std::optional<PushAssembly> assembly;
    std::optional<PushReply> refusal;
    uint64_t values_to_discard = 0;
    std::optional<PushHeader> push;  // The one that is being answered.

    std::optional<Ticket> ticket;
    ShardCore::Reader reader;
    std::optional<PullRequest> pull;
    bool is_pinning = false;

    std::optional<InitializeHeader> initialize;
    std::shared_ptr<FloatBuffer> initial;
    uint64_t initial_received = 0;
  };
  struct Parked {
    uint64_t stream = 0;
    std::optional<PushReply> push;
    bool wants_weights = false;
  };

  // Conversation with the coordinator, as ServerSync has it.
  void Sync();
  void OnSynced(const absl::StatusOr<std::string>& reply);
  absl::Duration NextWait() const;
  void OnOrders(const ServerOrders& orders);
  void TakeModel(const ServerOrders& orders);

  // Calls, as those of ShardService.
  void OnPushMessage(Call& call, const grpc::ByteBuffer& message);
  void BeginPush(Call& call, const PushHeader& header);
  void FinishPush(Call& call);
  void OnPullMessage(Call& call, const grpc::ByteBuffer& message);
  void OnInitializeMessage(Call& call, const grpc::ByteBuffer& message);
  absl::Status TakeInitialChunk(Call& call, const InitializeChunk& chunk);
  absl::Status CheckInitializer(const InitializeHeader& header) const;
  void End(const Call& call, const absl::Status& status);

  // Decisions, as ShardEngine carries them out.
  void AnswerNow(Call& call, const std::variant<Serve, Park>& outcome, Parked parked);
  void Answer(Call& call, const Parked& parked, Version version,
              const std::optional<RoundWork>& work);
  void Absorb(const Effects& effects);
  void StartNextJob();
  void FinishJob();
  PushKey KeyOf(const PushHeader& header) const;

  // Constant after construction.
  const ShardId shard_;
  const Scenario& scenario_;

  EventQueue& queue_;
  Network& network_;
  History& history_;
  Trace& trace_;
  Chance chance_;
  const std::shared_ptr<Process> process_ = std::make_shared<Process>();

  std::unique_ptr<ShardDecider> core_;
  std::unique_ptr<UpdatePath> path_;
  ServerOrders orders_;
  absl::Duration sync_pause_;
  uint64_t initialized_grant_ = 0;
  Weights published_;
  std::map<uint64_t, Call> calls_;  // By stream.
  std::map<PushId, PushPayload> held_;
  std::map<Ticket, Parked> parked_;
  std::deque<ShardJob> jobs_;
  bool is_working_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_
