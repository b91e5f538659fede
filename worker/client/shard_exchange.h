#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_EXCHANGE_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_EXCHANGE_H_

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "worker/client/gradient_feed.h"
#include "worker/client/push_encoder.h"
#include "worker/client/raw_call.h"
#include "worker/client/retries.h"
#include "worker/client/shard_client.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

/// A gradient, or an excuse, on its way to one shard.
struct ShardPush {
  /// The exchange adds how its values travel.
  PushHeader header;

  /// The shard's part of the gradient; empty excuses. It must stay as it is until the exchange is
  /// over, but for what `feed` does not call final yet.
  std::span<const float> values = {};

  /// Null: the values travel as they are.
  PushEncoder* encoder = nullptr;

  /// Says how far the whole gradient is final. Null: all values are.
  GradientFeed* feed = nullptr;
};

/// The answer to a push. Without weights if none were asked for or the push was refused.
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

/// One push to one shard and the weights that answer it, over as many tries as it takes: the way
/// from a gradient that becomes final to an answer that is known.
///
///     ShardExchange exchange(shard, push, std::move(weights));
///     for (;;) {
///       StatusOr<optional<ExchangeAnswer>> answer = exchange.Next();
///       … a failure ends it; an answer is to be heeded; nothing: it is over …
///     }
///
/// Chunks leave from the last to the first, each as soon as it is final. The same push goes out
/// again after a broken stream or RETRY_LATER. An exchange that is dropped before it is over ends
/// the stream, so that a push which was not complete does not count.
///
/// Not thread-safe: one owner, the shard's lane.
class ShardExchange {
 public:
  /// What is borrowed must outlive it.
  ShardExchange(ShardClient& shard, const ShardPush& push, WeightsArrival weights);
  ~ShardExchange();
  ShardExchange(const ShardExchange&) = delete;
  ShardExchange& operator=(const ShardExchange&) = delete;

  /// What the push was answered, anything but RETRY_LATER, before values of its weights are put in
  /// place; once they are, and gRPC holds nothing of the gradient, nothing more. Another answer
  /// follows if a try failed within the weights. ABORTED if the feed was.
  absl::StatusOr<std::optional<ExchangeAnswer>> Next();

  const LaneTimes& times() const { return times_; }

 private:
  /// One try, up to its answer.
  absl::StatusOr<ExchangeAnswer> Try();
  absl::Status WritePush();
  absl::StatusOr<ExchangeAnswer> ReadAnswer();
  absl::StatusOr<ExchangeChunk> Receive(bool is_first);

  // Once the answer was heeded.
  absl::Status TakeWeights();
  absl::StatusOr<std::optional<ExchangeAnswer>> End();

  /// The message that brings these values, or says where they are.
  absl::StatusOr<grpc::ByteBuffer> PushMessage(size_t begin, size_t end, bool is_first);

  /// What follows the chunk that begins at `begin`.
  RawCall::Next AfterChunk(size_t begin) const;

  void NoteEnd();

  /// Wait for the next try; not OK if there is to be none.
  absl::Status AwaitNextTry(const absl::Status& failure);
  absl::Status AwaitRoom(const PushReply& reply);

  bool is_given_up() const { return push_.feed != nullptr && push_.feed->is_aborted(); }

  ShardClient& shard_;
  ShardPush push_;
  WeightsArrival weights_;
  Retries retries_;
  const absl::Time overload_end_;  // By the clock of retries.
  LaneTimes times_;
  bool is_answered_ = false;                    // In this try, and the owner knows.
  std::optional<ExchangeChunk> weights_begin_;  // The message with which that answer's begin.
  bool is_over_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_EXCHANGE_H_
