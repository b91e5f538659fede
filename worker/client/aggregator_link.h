#ifndef SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_
#define SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_

#include <string>

#include "absl/status/status.h"
#include "worker/client/arena_loan.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/shard_connection.h"
#include "worker/client/shard_options.h"
#include "worker/core/aggregator_use.h"

namespace slipstream {

/// A worker's connection to the aggregator between it and one shard (cluster.tree). AggregatorUse
/// decides whether it is used.
///
/// Not thread-safe: one owner, the shard's lane; other threads may throw its CancelSwitch.
class AggregatorLink {
 public:
  /// `address` is host:port. `loan` and `cancel` must outlive the link.
  AggregatorLink(std::string address, ShardOptions options, ArenaLoan& loan, CancelSwitch& cancel);

  AggregatorUse& use() { return use_; }
  ShardConnection& connection() { return connection_; }

  /// Closes the stream and the channel to an aggregator that has failed. `is_first`: as
  /// AggregatorUse::OnFailure says.
  void Leave(const absl::Status& why, bool is_first);

  /// Logs that the aggregator has not combined a push: the first alone, as now and then one is
  /// normal.
  void LogNotCombined(const absl::Status& why);

  /// Logs that the aggregator is used again after a failure.
  void LogUsedAgain();

 private:
  // Constant after construction.
  const ShardOptions options_;

  AggregatorUse use_;
  ShardConnection connection_;
  bool has_logged_a_refusal_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_
