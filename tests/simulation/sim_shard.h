#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "server/core/shard_core.h"
#include "server/service/push_assembly.h"
#include "server/service/shard_engine.h"
#include "server/storage/buffer_pool.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/planted_bug.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_engine.h"
#include "tests/simulation/sim_server_sync.h"
#include "tests/simulation/trace.h"

namespace slipstream {

/// A server process in virtual time: the calls of ShardService, around what runs the shard and what
/// talks to the coordinator. The payloads' way is production's, from the received bytes through
/// PushAssembly to the chunks of the answer.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it the event queue's last event.
class SimShard {
 public:
  SimShard(ShardId shard, const Scenario& scenario, PlantedBug bug, EventQueue& queue,
           Network& network, History& history, Trace& trace);

  void OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message);
  void OnCancel(const StreamPtr& stream);
  void OnSent(const StreamPtr& stream);

  /// True once the run is over and the coordinator let this server go.
  bool may_exit() const { return sync_.may_exit(); }
  ShardEnd End() const { return engine_.End(); }
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

    std::optional<PullRequest> pull;
    bool is_pinning = false;

    std::optional<InitializeHeader> initialize;
    std::shared_ptr<FloatBuffer> initial;
    uint64_t initial_received = 0;
  };

  void OnPushMessage(Call& call, const grpc::ByteBuffer& message);
  void BeginPush(Call& call, const PushHeader& header);
  void OnPullMessage(Call& call, const grpc::ByteBuffer& message);
  void OnInitializeMessage(Call& call, const grpc::ByteBuffer& message);
  absl::Status TakeInitialChunk(Call& call, const InitializeChunk& chunk);
  void OnAnswer(uint64_t stream, absl::StatusOr<Answer> answer);
  void NoteServed(const Call& call, const ServedWeights& weights);
  void Send(Call& call, Answer answer);
  void End(const Call& call, const absl::Status& status);

  // Constant after construction.
  const ShardId shard_;

  Network& network_;
  History& history_;
  Chance chance_;
  std::map<uint64_t, Call> calls_;  // By stream.
  SimEngine engine_;
  SimServerSync sync_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_SHARD_H_
