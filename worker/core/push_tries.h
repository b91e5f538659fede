#ifndef SLIPSTREAM_WORKER_CORE_PUSH_TRIES_H_
#define SLIPSTREAM_WORKER_CORE_PUSH_TRIES_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"
#include "worker/core/aggregator_use.h"
#include "worker/core/call_tries.h"

namespace slipstream {

/// Decides the tries of one push to one shard: where each goes, what its end means, and when the
/// same push is sent again.
///
///     PushTries tries(options, {.has_values = …}, &aggregator);
///     for (;;) {
///       PushTries::Peer peer = tries.Begin(now);
///       … send the push there, and read its answer …
///       StatusOr<PushTries::Next> next = tries.OnAnswer(reply, shard, now);   // Or OnFailure.
///       … give up at a failure; an answer for the worker, or a wait before the next try …
///     }
///
/// The same push is sent again after a broken stream, RETRY_LATER or UNKNOWN_MEMBER. If the shard
/// has an aggregator, a push with values goes there. If the aggregator refuses it, for whatever
/// reason, or fails, the same push goes to the shard. A push without values goes to the shard.
///
/// All times are of one clock that never goes back.
///
/// Not thread-safe: one owner.
class PushTries {
 public:
  struct Options {
    RetryOptions retry;

    /// How long the shard may answer RETRY_LATER before it is given up.
    absl::Duration overload_timeout = absl::Minutes(10);

    /// Seeds the jitter of the waits.
    uint64_t seed = 1;
  };

  enum class Peer { kShard, kAggregator };

  /// The fate of the aggregator in this try, for people, and for the stream to it.
  enum class AggregatorNews {
    kNone,
    kFailed,       // It is left alone for a while; the stream to it is to be closed.
    kNotCombined,  // It has answered NOT_COMBINED, which is no failure.
    kUsedAgain,    // It has answered after it had failed.
  };

  struct Next {
    /// Set if the answer is the worker's. Otherwise Begin follows, after `again.wait`.
    bool is_over = false;
    Repetition again;

    /// Set if the shard has answered after it had failed.
    bool is_back = false;

    /// Set if the next try needs a new stream to the shard.
    bool reopens = false;
    AggregatorNews aggregator = AggregatorNews::kNone;

    /// Whether the aggregator had not failed since it was last used with success. Set with kFailed
    /// alone.
    bool is_first_failure = false;
  };

  struct Push {
    bool has_values = false;
    bool is_composite = false;
  };

  /// `aggregator`: null if the shard has none; it must outlive this object.
  PushTries(const Options& options, const Push& push, AggregatorUse* aggregator);

  /// Begins a try, and returns where it goes.
  Peer Begin(absl::Time now);

  /// Notes that an answer is late, because the shard waits for other workers. Returns whether the
  /// shard had failed before.
  bool OnWait() { return tries_.OnReached(); }

  /// Notes the answer to this try. Fails if the push is given up, or the answer makes no sense.
  /// `shard`: its name, for messages to people.
  absl::StatusOr<Next> OnAnswer(const PushReply& reply, absl::string_view shard, absl::Time now);

  /// Notes that this try failed, before its answer or after it while weights arrived. Fails if the
  /// push is given up.
  absl::StatusOr<Next> OnFailure(const absl::Status& failure, absl::string_view shard,
                                 absl::Time now);

 private:
  Next OnAggregatorAnswer(const PushReply& reply, absl::Time now);

  /// Turns to the shard, after the aggregator has refused the push or failed.
  Next LeaveAggregator(bool is_failure, absl::Time now);

  // Constant after construction.
  const absl::Duration overload_timeout_;
  const Push push_;
  AggregatorUse* const aggregator_;

  CallTries tries_;  // Those at the shard.
  Peer peer_ = Peer::kShard;
  bool is_for_shard_ = false;  // The aggregator has not taken this push.

  /// When a shard that has answered RETRY_LATER ever since is given up. Empty if its last answer
  /// was another one.
  std::optional<absl::Time> overload_end_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_PUSH_TRIES_H_
