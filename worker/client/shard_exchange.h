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
#include "worker/client/shard_client.h"
#include "worker/client/shard_connection.h"
#include "worker/client/weights_arrival.h"
#include "worker/core/push_tries.h"

namespace slipstream {

/// A gradient, or an excuse, to be pushed to one shard.
struct ShardPush {
  /// The exchange fills in the fields that describe how the values travel.
  PushHeader header;

  /// The shard's part of the gradient; empty for an excuse. Once `feed` calls a value final, it
  /// must not change until the exchange is over.
  std::span<const float> values = {};

  /// Null if the values are sent unencoded.
  PushEncoder* encoder = nullptr;

  /// Says how much of the whole gradient is final, and has its trailer. Null if all of it is, and
  /// the header has the trailer.
  GradientFeed* feed = nullptr;
};

/// When a lane did each part of one exchange, by this machine's clock. All fields but `busy`
/// describe the last try.
struct LaneTimes {
  absl::Time push_begin;  // When the first message was begun.
  absl::Time push_end;    // When the transport had taken the last one.
  absl::Time answered;    // When the first message of the answer had arrived.
  absl::Time end;         // When all weights had arrived.

  /// The time spent on all tries, less the time spent waiting for the gradient, and for what did
  /// not come after the last message of a try that broke.
  absl::Duration busy;
};

/// One push to one shard and the weights that answer it, over as many tries as are needed.
///
///     ShardExchange exchange(shard, push, std::move(weights));
///     for (;;) {
///       StatusOr<optional<ExchangeAnswer>> answer = exchange.Next();
///       … stop at a failure; handle an answer; nothing means that it is over …
///     }
///
/// Chunks are sent from the last to the first, each as soon as it is final. PushTries decides where
/// each try goes and what its end means. If an exchange is dropped before it is over, it ends the
/// stream, so that an incomplete push does not count. A push without values ends the stream to the
/// aggregator, which then does not wait for this worker.
///
/// Not thread-safe: one owner, the shard's lane.
class ShardExchange {
 public:
  /// Everything that is borrowed must outlive the exchange.
  ShardExchange(ShardClient& shard, const ShardPush& push, WeightsArrival weights);
  ~ShardExchange();
  ShardExchange(const ShardExchange&) = delete;
  ShardExchange& operator=(const ShardExchange&) = delete;

  /// Returns the next answer to the push (never RETRY_LATER or UNKNOWN_MEMBER; NOT_COMBINED only to
  /// a push with parts), before any of its weights are written. The call after that writes the
  /// weights and returns nothing once all are in place and gRPC holds no part of the gradient. If
  /// the try fails while weights arrive, that call returns another answer instead. ABORTED if the
  /// feed was aborted.
  absl::StatusOr<std::optional<ExchangeAnswer>> Next();

  const LaneTimes& times() const { return times_; }

 private:
  /// Makes one try, up to its answer.
  absl::StatusOr<ExchangeAnswer> Try();
  absl::Status WritePush();
  absl::StatusOr<ExchangeAnswer> ReadAnswer();
  absl::StatusOr<ExchangeChunk> Receive(bool is_first);

  // These run once the caller has handled the answer.
  absl::Status TakeWeights();
  absl::StatusOr<std::optional<ExchangeAnswer>> End();

  /// Returns what travels with the last values. REQUIRES: the feed, if any, is sealed.
  PushTrailer Trailer() const;

  absl::Status SendChunk(size_t begin, size_t end, bool is_first);

  /// Returns what the caller does after it has sent the chunk that begins at `begin`.
  RawCall::Next AfterChunk(size_t begin) const;

  void NoteEnd();

  /// Ends a try that has failed, and waits for the next. Fails if no other may follow.
  absl::Status OnFailure(const absl::Status& why);

  /// Ends a try that was not the last, and waits for the next. `why`: the failure of the try, or
  /// that of its answer. Fails if no other may follow.
  absl::Status AwaitNextTry(const absl::StatusOr<PushTries::Next>& next, const absl::Status& why);

  /// Logs what an answer says about the shard and its aggregator.
  void Tell(const PushTries::Next& next);

  bool is_given_up() const { return push_.feed != nullptr && push_.feed->is_aborted(); }

  ShardClient& shard_;
  ShardPush push_;
  WeightsArrival weights_;
  PushTries tries_;
  LaneTimes times_;
  ShardConnection* connection_;                 // The present try's.
  bool is_answered_ = false;                    // The owner has the answer of this try.
  std::optional<ExchangeChunk> weights_begin_;  // The first message with weights of that answer.
  bool is_over_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_EXCHANGE_H_
