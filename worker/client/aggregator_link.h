#ifndef SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_
#define SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/exchange_stream.h"
#include "worker/client/retries.h"
#include "worker/client/shard_channel.h"
#include "worker/client/shard_options.h"

namespace slipstream {

/// A worker's connection to the aggregator between it and one shard (cluster.tree), with the
/// exchange stream there. The worker can do without: while the aggregator is not usable, pushes and
/// pulls go to the shard.
///
/// Not thread-safe: one owner, the shard's lane; other threads may throw its CancelSwitch.
class AggregatorLink {
 public:
  /// How long an aggregator that failed is left alone: the first time, and at most. Each failure
  /// after another one doubles the time.
  static constexpr absl::Duration kFirstPause = absl::Seconds(1);
  static constexpr absl::Duration kPauseMax = absl::Seconds(30);

  /// So many answers NOT_COMBINED, one after another, count as a failure: a cause that lasts must
  /// not make the worker send each gradient twice.
  static constexpr uint32_t kNotCombinedMax = 3;

  /// `address` is host:port. `options` and `cancel` must outlive the link.
  AggregatorLink(std::string address, const ShardOptions& options, CancelSwitch& cancel);

  /// Returns whether the next call may go to the aggregator.
  bool IsUsable() const { return now_() >= paused_until_; }

  ExchangeStream& stream() { return stream_; }

  /// For calls beside the stream.
  ShardChannel& channel() { return channel_; }

  /// Notes that a call to the aggregator failed, and closes the stream.
  void OnFailure(const absl::Status& why);

  /// Notes that the aggregator has refused a push. This is a failure unless the outcome is
  /// NOT_COMBINED, which is one only after others (kNotCombinedMax).
  void OnRefusal(const PushReply& refusal);

  /// Notes that the aggregator has answered a call, and has not refused it.
  void OnAnswer();

 private:
  // Constant after construction.
  const std::string address_;
  const SteadyClock now_;

  ShardChannel channel_;
  ExchangeStream stream_;
  absl::Duration next_pause_ = kFirstPause;
  absl::Time paused_until_ = absl::InfinitePast();
  uint32_t not_combined_ = 0;          // The answers NOT_COMBINED since the last other answer.
  bool has_logged_a_refusal_ = false;  // Only the first is logged: now and then one is normal.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_AGGREGATOR_LINK_H_
