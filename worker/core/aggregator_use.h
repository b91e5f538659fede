#ifndef SLIPSTREAM_WORKER_CORE_AGGREGATOR_USE_H_
#define SLIPSTREAM_WORKER_CORE_AGGREGATOR_USE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// Decides whether a worker's calls go to the aggregator between it and one shard (cluster.tree).
/// The worker can do without: while the aggregator is not usable, they go to the shard.
///
/// All times are of one clock that never goes back.
///
/// Not thread-safe: one owner.
class AggregatorUse {
 public:
  /// How long an aggregator that failed is left alone: the first time, and at most. Each failure
  /// after another one doubles the time.
  static constexpr absl::Duration kFirstPause = absl::Seconds(1);
  static constexpr absl::Duration kPauseMax = absl::Seconds(30);

  /// So many answers NOT_COMBINED, one after another, count as a failure: a cause that lasts must
  /// not make the worker send each gradient twice.
  static constexpr uint32_t kNotCombinedMax = 3;

  /// Returns whether the next call may go to the aggregator.
  bool IsUsable(absl::Time now) const { return now >= paused_until_; }

  /// Notes that a call to the aggregator failed. Returns whether none had failed since it was last
  /// used with success.
  bool OnFailure(absl::Time now);

  /// Notes that the aggregator has refused a push. Returns whether this is a failure, after which
  /// OnFailure is to be called: a NOT_COMBINED is one only after others (kNotCombinedMax).
  bool OnRefusal(PushOutcome outcome);

  /// Notes that the aggregator has answered a call, and has not refused it. Returns whether it had
  /// failed before.
  bool OnAnswer();

 private:
  absl::Duration next_pause_ = kFirstPause;
  absl::Time paused_until_ = absl::InfinitePast();
  uint32_t not_combined_ = 0;  // The answers NOT_COMBINED since the last other answer.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_AGGREGATOR_USE_H_
