#ifndef SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_
#define SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_

#include <chrono>

namespace slipstream {

/// Decides how to wait for the other end of a conversation: awake, by polling, as long as it
/// answers soon, and asleep if it takes longer. Waking up takes a processor longer than a small
/// answer does. A thread that waits awake yields its core at each look, so that threads that
/// compute lose nothing.
///
///     wait.Begin();
///     while (!has_come && AwakeWait::Clock::now() < wait.awake_until()) { yield; look; }
///     if (!has_come) sleep until it has
///     wait.End();
///
/// Not thread-safe: one owner.
class AwakeWait {
 public:
  /// A steady clock: if the time of day were set back, a thread would stay awake for as long.
  using Clock = std::chrono::steady_clock;

  /// How long an answer that comes soon may take. Measured: 300 µs are too short for the answer to
  /// 1 MiB over TCP, and 1500 µs gain no more than 600.
  static constexpr Clock::duration kSoon = std::chrono::microseconds(500);

  /// The end of a time awake that is over already.
  static constexpr Clock::time_point kAsleep = Clock::time_point::min();

  void Begin() { begin_ = Clock::now(); }
  void End() { last_ = Clock::now() - begin_; }

  /// Returns until when it is worth staying awake in the wait that began last.
  Clock::time_point awake_until() const { return last_ <= kSoon ? begin_ + kSoon : kAsleep; }

 private:
  Clock::time_point begin_;
  Clock::duration last_ = Clock::duration::max();  // The duration of the last wait.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_
