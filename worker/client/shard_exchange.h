#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_EXCHANGE_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_EXCHANGE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/gradient_feed.h"
#include "worker/client/push_encoder.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

/// What a push was answered. Without weights if none were asked for or the push was refused.
struct ExchangeAnswer {
  PushReply push;
  std::optional<WeightsHeader> weights;
};

/// When a lane did what for one exchange, on this machine's clock. Of the last try, but for `busy`.
struct LaneTimes {
  absl::Time push_begin;  // The first message was begun.
  absl::Time push_end;    // The last one was taken by the transport.
  absl::Time answered;    // The first message of the answer was there.
  absl::Time end;         // So were all weights.

  /// Of that time and of failed tries, what was not spent waiting for the gradient.
  absl::Duration busy;
};

/// One push to one shard and the weights that answer it, over as many tries as it takes.
///
/// Not thread-safe: owned by the shard's lane while it is under way.
struct ShardExchange {
  PushHeader header;

  /// The shard's part of the gradient; empty excuses. It must stay as it is until the exchange is
  /// over, but for what `feed` does not call final yet.
  std::span<const float> values;

  /// Null: the values travel as they are.
  PushEncoder* encoder = nullptr;

  /// Null: all values are final. Positions in it are those of the whole gradient, in which the
  /// shard's part begins at `feed_begin`.
  GradientFeed* feed = nullptr;
  size_t feed_begin = 0;

  WeightsArrival weights{{}};

  /// Called with each answer, before values of its weights are put in place: more than once if a
  /// try failed within the weights or was answered RETRY_LATER. A failure ends the exchange.
  std::function<absl::Status(const ExchangeAnswer&)> on_answer;

  LaneTimes times = {};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_EXCHANGE_H_
