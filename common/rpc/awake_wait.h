#ifndef SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_
#define SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_

#include <chrono>

namespace slipstream {

/// How to wait for the other end of a conversation: awake, looking again and again, as long as it
/// answers soon; asleep where it takes longer. To be woken takes a processor longer than a small
/// answer does. Who waits awake yields its core at each look to any thread that wants it, so that
/// those which compute lose nothing by it.
///
///     wait.Begin();
///     while (!has_come && AwakeWait::Clock::now() < wait.awake_until()) { yield; look; }
///     if (!has_come) sleep until it has
///     wait.End();
///
/// Not thread-safe: one owner.
class AwakeWait {
 public:
  /// Not the time of day: if that is set back, nobody shall stay awake until it is that late again.
  using Clock = std::chrono::steady_clock;

  /// How long what comes soon may take. Measured: 300 µs are too short for the answer to 1 MiB over
  /// TCP, and 1500 µs gain no more than 600.
  static constexpr Clock::duration kSoon = std::chrono::microseconds(500);

  /// An end of being awake that lies behind whoever asks.
  static constexpr Clock::time_point kAsleep = Clock::time_point::min();

  void Begin() { begin_ = Clock::now(); }
  void End() { last_ = Clock::now() - begin_; }

  /// Of the wait that was begun last: until then it is worth staying awake.
  Clock::time_point awake_until() const { return last_ <= kSoon ? begin_ + kSoon : kAsleep; }

 private:
  Clock::time_point begin_;
  Clock::duration last_ = Clock::duration::max();  // What the wait before took.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_AWAKE_WAIT_H_
