#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CALLS_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CALLS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/values_codec.h"
#include "deploy/lab/lab_context.h"
#include "deploy/lab/virtual_peer.h"
#include "deploy/lab/virtual_process.h"
#include "server/data_plane/shard.h"
#include "worker/client/shard_exchange.h"
#include "worker/core/aggregator_use.h"

namespace slipstream {

/// The calls of a virtual worker, or aggregator, to the shards. Those to one shard are made one
/// after another, in the order in which they were asked for. A call takes the time of its messages
/// on the links; one that the shard refuses for now is made again. A worker with an aggregator
/// before the shard calls that one, as AggregatorUse says, with its gradients and with the pulls
/// that do not train.
///
/// Not thread-safe: one owner.
class VirtualCalls {
 public:
  /// The values of a push to one shard, which may be sent several times.
  struct Payload {
    std::shared_ptr<ReceivedValues> values;  // Null for a push without values.
    uint64_t bytes = 0;                      // What they take on the way.
  };

  /// Takes an answer that has come whole.
  using OnPulled = std::function<void(const PullRequest& request, const Answer& answer)>;
  using OnPushed =
      std::function<void(const PushHeader& header, const Answer& answer, const LaneTimes& times)>;

  /// `on_failure` is called if a shard refuses a pull for good. All arguments must outlive the
  /// object, which must outlive the process.
  VirtualCalls(const LabContext& lab, VirtualProcess& process, VirtualRoute shards,
               std::optional<VirtualRoute> aggregators,
               std::function<void(const absl::Status&)> on_failure);

  /// Does the same for a worker.
  VirtualCalls(const LabContext& lab, VirtualProcess& process, WorkerId worker,
               std::function<void(const absl::Status&)> on_failure)
      : VirtualCalls(lab, process, lab.WayToShards(worker), lab.WayToAggregators(worker),
                     std::move(on_failure)) {}
  VirtualCalls(const VirtualCalls&) = delete;
  VirtualCalls& operator=(const VirtualCalls&) = delete;

  /// Ends the calls that shards have not answered.
  ~VirtualCalls();

  /// `request` and `header` are called when the shard's turn has come. The next call to the shard
  /// begins once the last function has returned.
  void Pull(ShardId shard, std::function<PullRequest()> request, OnPulled on_pulled);
  void Push(ShardId shard, std::function<PushHeader()> header, Payload payload, OnPushed on_pushed);

 private:
  struct PullCall {
    ShardId shard{};
    PullRequest request;
    OnPulled on_pulled;
    bool is_for_shard = false;  // The aggregator has refused it.
  };
  struct PushCall {
    ShardId shard{};
    PushHeader header;
    Payload payload;
    OnPushed on_pushed;
    LaneTimes times;
    bool is_for_shard = false;
  };

  /// The calls to a shard.
  struct Lane {
    std::deque<std::function<void()>> waiting;
    bool is_busy = false;

    // The call under way; null and 0 if there is none.
    VirtualPeer* peer = nullptr;
    CallId call{};

    // The stream of pushes to the aggregator; 0 if none is open.
    CallId stream{};
    AggregatorUse aggregator;
  };

  void Begin(ShardId shard, std::function<void()> call);
  void End(ShardId shard);
  void Send(const std::shared_ptr<PullCall>& call);
  void Send(const std::shared_ptr<PushCall>& call);
  void OnAnswer(const std::shared_ptr<PullCall>& call, const VirtualRoute& way, Answer answer);
  void OnAnswer(const std::shared_ptr<PushCall>& call, const VirtualRoute& way, Answer answer);

  /// Returns the way of a call that is made now: to the aggregator, if one may be used.
  const VirtualRoute& Way(ShardId shard, bool may_be_aggregator) const;

  /// Returns when the answer, which is given now, has come to the caller.
  absl::Time Arrival(const VirtualRoute& way, ShardId shard, const Answer& answer) const;

  const LabContext& lab_;
  VirtualProcess& process_;
  const VirtualRoute shards_;
  const std::optional<VirtualRoute> aggregators_;
  const std::function<void(const absl::Status&)> on_failure_;
  std::vector<Lane> lanes_;  // By shard.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CALLS_H_
