#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_AGGREGATOR_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_AGGREGATOR_H_

#include <cstddef>
#include <cstdint>
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
#include "proto/coordinator.pb.h"
#include "server/aggregator/push_group.h"
#include "server/control_plane/server_orders.h"
#include "server/core/orders.h"
#include "server/data_plane/push_framing.h"
#include "server/data_plane/shard.h"
#include "server/storage/buffer_pool.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/network.h"
#include "tests/simulation/shard_lane.h"
#include "tests/simulation/sim_server_sync.h"
#include "tests/simulation/sim_world.h"

namespace slipstream {

/// An aggregator process in virtual time: production's PushGroup and PushFraming, with a simulated
/// network around them, and a ShardLane for each uplink. The
/// name of a call is the number of its stream.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimAggregator final : private OrdersSink {
 public:
  /// `number` identifies the process among all aggregators of the run, from 0 on.
  SimAggregator(const SimWorld& world, uint32_t group, ShardId shard, uint64_t number);

  uint32_t group() const { return group_; }
  ShardId shard() const { return shard_; }
  bool is_dead() const { return process_->is_dead; }

  /// Ends the process. All of its connections break.
  void Kill();

  void OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message);
  void OnCancel(const StreamPtr& stream);
  std::string State() const;

 private:
  /// The call of a worker, which has one push at a time.
  struct Call {
    StreamPtr stream;
    PushFraming pushes;
  };

  /// A connection to the shard, with what is on its way there.
  struct Uplink {
    ShardLane lane;
    std::vector<float> values;
    std::shared_ptr<FloatBuffer> weights;
    ExchangeAnswer answer;
  };

  void OnOrders(const ServerOrders& orders) override;
  void OnUpstream(const std::string& /*address*/) override { has_upstream_ = true; }
  void Describe(v1::SyncServerRequest& request) override;

  BegunPush BeginPush(const PushHeader& header);
  void NoteArrival(const PushHeader& header, std::vector<float> values);

  /// Does what the group has to do now, and looks at it again when patience ends.
  void Advance();
  void SendUp(PushGroup::Outgoing composite);
  Uplink& FreeUplink();
  void Deliver(Answers answers);
  void Reply(const Call& call, Answer answer);

  // Constant after construction.
  const SimWorld world_;
  const uint32_t group_;
  const ShardId shard_;
  const uint64_t number_;
  const std::shared_ptr<Process> process_ = std::make_shared<Process>();

  Chance chance_;
  PushGroup pushes_;
  bool has_upstream_ = false;
  std::map<uint64_t, Call> calls_;  // By stream.
  std::vector<std::unique_ptr<Uplink>> uplinks_;
  absl::Time next_look_ = absl::InfiniteFuture();
  SimServerSync sync_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_AGGREGATOR_H_
