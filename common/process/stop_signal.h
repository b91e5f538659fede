#ifndef SLIPSTREAM_COMMON_PROCESS_STOP_SIGNAL_H_
#define SLIPSTREAM_COMMON_PROCESS_STOP_SIGNAL_H_

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "absl/time/time.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// The signals by which a program is asked to stop.
inline constexpr std::array<int, 3> kStopSignals = {SIGINT, SIGTERM, SIGHUP};

/// Turns the first SIGINT, SIGTERM or SIGHUP into an event that a program can wait for.
///
/// From construction to destruction, these signals wait for a thread of this class, which records
/// them and makes `fd()` readable; the program then stops in ordinary code, where locks and gRPC
/// may be used. No handler runs anywhere: libraries that compute (oneDNN) point a thread's stack
/// pointer into the heap for a while, and a handler's frame would overwrite what lies there.
///
/// A second signal ends the process at once with 128 + its number: a user who repeats it does not
/// want to wait. One of the parent and one of somebody else are no repetition: a batch system
/// signals all processes, and psctl then those that it has started. A SIGHUP stops a program that
/// has a terminal, which is then gone; others go on, as they have no settings to read anew, and say
/// so. One that was ignored before stays ignored, as nohup wants it. SIGUSR1 and SIGUSR2, which
/// batch systems send, are ignored from then on, also after destruction.
///
/// A program that can save what there is and end may take SIGUSR1 for a request to do so. A signal
/// after it is the first of those above, so the batch system's SIGTERM then hurries nobody.
///
/// Construct it before other threads, those of gRPC too, since a signal that one of them does not
/// block ends the process. Only one at a time.
///
/// Thread-safe: any thread may ask and wait.
class StopSignal {
 public:
  enum class OnPreemption { kIgnore, kStop };

  explicit StopSignal(OnPreemption on_preemption = OnPreemption::kIgnore);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool stopped() const { return signal() != 0; }

  /// Returns the signal that asked to stop first, or 0.
  int signal() const { return signal_.load(); }

  /// Waits until a signal asks to stop, for `timeout` at most (absl::InfiniteDuration() for ever).
  /// Returns true once stopped.
  bool WaitFor(absl::Duration timeout) const;

  /// A descriptor that stays readable once stopped. It is for poll only: never read from it.
  int fd() const { return event_.get(); }

  /// Returns 128 + the signal, or 0 if there was none.
  int ExitStatus() const { return stopped() ? 128 + signal() : 0; }

 private:
  /// Takes signals until `quit_` is readable.
  void Watch(const FileDescriptor& signals);
  void Note(int signal, bool is_of_parent);

  const bool hang_up_stops_;
  std::atomic<int> signal_ = 0;
  const FileDescriptor event_;
  const FileDescriptor quit_;
  sigset_t old_mask_ = {};

  // The watcher's: who has sent a signal to stop.
  bool parent_has_asked_ = false;
  bool others_have_asked_ = false;
  std::thread watcher_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_STOP_SIGNAL_H_
