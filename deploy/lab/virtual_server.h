#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_SERVER_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"
#include "common/wire/values_codec.h"
#include "deploy/lab/event_queue.h"
#include "deploy/lab/virtual_peer.h"
#include "proto/status.pb.h"
#include "server/core/coordinator/servers.h"
#include "server/core/orders.h"
#include "server/data_plane/shard.h"
#include "server/data_plane/value_counts.h"
#include "server/storage/push_log.h"

namespace slipstream {

/// A server in virtual time: production's Shard, whose jobs take virtual time.
///
/// Not thread-safe: one owner, the thread of the event queue, which must outlive it.
class VirtualServer final : public VirtualPeer {
 public:
  struct Options {
    ShardId shard{};
    RunSpec run;

    /// How long an update takes.
    absl::Duration update;

    /// Gets a line for each push that takes effect; absent if there is none.
    std::optional<PushLog> push_log;
  };

  VirtualServer(Options options, EventQueue& queue);

  const ShardMachine& machine() const { return shard_.machine(); }
  Weights weights() const { return shard_.weights(); }
  const std::string& failure() const { return shard_.failure(); }

  // The conversation with the coordinator.

  /// The number of the newest orders that were taken.
  uint64_t orders_seen() const { return orders_seen_; }

  /// Returns what the server has to report.
  ServerReport Report();
  void OnOrders(const ServerOrders& orders);
  void OnCoordinatorAsked() { shard_.OnCoordinatorAsked(); }
  void OnCoordinatorAnswered() { shard_.OnCoordinatorAnswered(); }

  // Calls of workers.

  /// Takes the initial weights of this shard.
  absl::Status Initialize(const InitializeHeader& header, std::span<const float> weights);

  void Pull(CallId call, const PullRequest& request, OnAnswer on_answer) override;
  void FinishPull(CallId call, const PullRequest& request) override;
  void Push(CallId call, const PushHeader& header, ReceivedValues* values, uint64_t bytes,
            OnAnswer on_answer) override {
    Decide(call, header, values, bytes, std::move(on_answer));
  }
  void Cancel(CallId call) override;

  /// Does what Push does. Returns what was decided, which the answer says, too; but that may have
  /// to wait.
  PushReply Decide(CallId call, const PushHeader& header, ReceivedValues* values, uint64_t bytes,
                   OnAnswer on_answer);

  /// Returns the shard's figures, as a server reports them.
  v1::ShardStatus Describe() const;

  /// Writes what there is of the push log, if there is one.
  absl::Status FlushPushLog();

 private:
  void Absorb(ShardResult result);
  void StartJobs();
  void FinishJob(ShardJob job);

  Options options_;
  EventQueue& queue_;
  Shard shard_;
  std::optional<ParameterRange> range_;
  ValueCounts value_counts_;
  uint64_t orders_seen_ = 0;
  uint64_t run_ = 0;
  uint64_t reports_ = 0;
  std::map<CallId, OnAnswer> waiting_;
  bool job_runs_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_SERVER_H_
