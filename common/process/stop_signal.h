#ifndef SLIPSTREAM_COMMON_PROCESS_STOP_SIGNAL_H_
#define SLIPSTREAM_COMMON_PROCESS_STOP_SIGNAL_H_

#include <array>
#include <csignal>

#include "absl/time/time.h"

namespace slipstream {

/// The signals by which a program is asked to stop.
inline constexpr std::array<int, 3> kStopSignals = {SIGINT, SIGTERM, SIGHUP};

/// Turns the first SIGINT, SIGTERM or SIGHUP into an event that a program can wait for.
///
/// From construction to destruction, these signals are only recorded and make `fd()` readable;
/// the program then stops in ordinary code, where locks and gRPC may be used. A second signal ends
/// the process at once with 128 + its number: a user who repeats it does not want to wait.
/// A SIGHUP that was ignored before stays ignored, as nohup wants it. Construct it first in main,
/// before other threads, and only one at a time.
///
/// Thread-safe: any thread may ask and wait.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool stopped() const { return signal() != 0; }

  /// Returns the signal that asked to stop, or 0.
  int signal() const;

  /// Waits until a signal asks to stop, for `timeout` at most (absl::InfiniteDuration() for ever).
  /// Returns true once stopped.
  bool WaitFor(absl::Duration timeout) const;

  /// A descriptor that stays readable once stopped. It is for poll only: never read from it.
  int fd() const { return fd_; }

  /// Returns 128 + the signal, or 0 if there was none.
  int ExitStatus() const { return stopped() ? 128 + signal() : 0; }

 private:
  const int fd_;
  std::array<struct sigaction, kStopSignals.size()> old_ = {};  // In the same order.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_STOP_SIGNAL_H_
