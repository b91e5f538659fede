#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_AGGREGATOR_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_AGGREGATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "deploy/lab/lab_context.h"
#include "deploy/lab/virtual_calls.h"
#include "deploy/lab/virtual_peer.h"
#include "deploy/lab/virtual_process.h"
#include "server/aggregator/group_pulls.h"
#include "server/aggregator/push_group.h"
#include "server/core/coordinator/aggregators.h"
#include "server/core/orders.h"

namespace slipstream {

/// An aggregator between a group of workers and one shard in virtual time: production's PushGroup
/// and GroupPulls, whose calls to the shard take the time of its group's link.
///
/// Not thread-safe: one owner, the thread of the event queue, which must outlive it.
class VirtualAggregator final : public VirtualPeer {
 public:
  /// `on_failure` is called if the shard refuses a pull for good. `lab` must outlive the object.
  VirtualAggregator(const LabContext& lab, uint32_t group, ShardId shard,
                    std::function<void(const absl::Status&)> on_failure);

  // The conversation with the coordinator.
  AggregatorReport Report();
  void OnOrders(const ServerOrders& orders);
  uint64_t orders_seen() const { return pushes_.orders().number; }

  // Calls of workers.
  void Pull(CallId call, const PullRequest& request, OnAnswer on_answer) override;
  void FinishPull(CallId call, const PullRequest& request) override;
  void Push(CallId call, const PushHeader& header, ReceivedValues* values, uint64_t bytes,
            OnAnswer on_answer) override;
  void Cancel(CallId call) override;

 private:
  /// A connection to the shard, which carries one call at a time.
  struct Uplink {
    VirtualCalls calls;
    bool is_busy = false;
  };

  /// Does what the group has to do now, and looks at it again when patience ends.
  void Advance();
  void SendUp(PushGroup::Outgoing composite);
  void Fetch();
  std::unique_ptr<Uplink> MakeUplink();
  Uplink& FreeUplink();
  void Deliver(Answers answers);

  const LabContext& lab_;
  const uint32_t group_;
  const ShardId shard_;
  const std::function<void(const absl::Status&)> on_failure_;
  VirtualProcess process_;
  PushGroup pushes_;
  GroupPulls pulls_;
  std::map<CallId, OnAnswer> waiting_;
  std::vector<std::unique_ptr<Uplink>> uplinks_;  // Of composites.
  std::unique_ptr<Uplink> pull_uplink_;
  absl::Time next_look_ = absl::InfiniteFuture();
  uint64_t reports_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_AGGREGATOR_H_
