#ifndef SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_
#define SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_

#include <string>

#include "absl/status/status.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/exchange_stream.h"
#include "worker/client/shard_channel.h"
#include "worker/client/shard_options.h"
#include "worker/core/aggregator_use.h"

namespace slipstream {

/// A worker's connection to the aggregator between it and one shard (cluster.tree), with the
/// exchange stream there. AggregatorUse decides whether it is used.
///
/// Not thread-safe: one owner, the shard's lane; other threads may throw its CancelSwitch.
class AggregatorLink {
 public:
  /// `address` is host:port. `options` and `cancel` must outlive the link.
  AggregatorLink(std::string address, const ShardOptions& options, CancelSwitch& cancel);

  AggregatorUse& use() { return use_; }
  ExchangeStream& stream() { return stream_; }

  /// For calls beside the stream.
  ShardChannel& channel() { return channel_; }

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
  const std::string address_;

  AggregatorUse use_;
  ShardChannel channel_;
  ExchangeStream stream_;
  bool has_logged_a_refusal_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_
