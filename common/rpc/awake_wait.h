#ifndef SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_
#define SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace slipstream {

/// How to wait for the other end of a conversation: awake, looking again and again, as long as it
/// answers soon; asleep where it takes longer. To be woken takes a processor longer than a small
/// answer does. Who waits awake yields its core at each look to any thread that wants it, so that
/// those which compute lose nothing by it.
///
///     wait.Begin();
///     while (!has_come && absl::Now() < wait.awake_until()) { yield; look; }
///     if (!has_come) sleep until it has
///     wait.End();
///
/// Not thread-safe: one owner.
class AwakeWait {
 public:
  /// How long what comes soon may take. Measured: 300 µs are too short for the answer to 1 MiB over
  /// TCP, and 1500 µs gain no more than 600.
  static constexpr absl::Duration kSoon = absl::Microseconds(500);

  void Begin() { begin_ = absl::Now(); }
  void End() { last_ = absl::Now() - begin_; }

  /// Of the wait that was begun last: until then it is worth staying awake.
  absl::Time awake_until() const { return last_ <= kSoon ? begin_ + kSoon : absl::InfinitePast(); }

 private:
  absl::Time begin_ = absl::InfinitePast();
  absl::Duration last_ = absl::InfiniteDuration();  // What the wait before took.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_
