#include "common/process/stop_signal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/check.h"

namespace slipstream {
namespace {

// A handler reaches only static variables. Both are lock-free, so a handler may use them.
std::atomic<int> received_signal{0};
std::atomic<int> event_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void NoteSignal(int signal) {
  const int saved_errno = errno;
  int none = 0;
  if (!received_signal.compare_exchange_strong(none, signal)) _exit(128 + signal);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_fd.load(), &one, sizeof one);
  errno = saved_errno;
}

int OpenEventFd() {
  PS_CHECK(event_fd.load() == -1);  // Only one at a time: signals belong to the process.
  received_signal.store(0);
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  PS_CHECK(fd >= 0);
  event_fd.store(fd);
  return fd;
}

}  // namespace

StopSignal::StopSignal() : fd_(OpenEventFd()) {
  struct sigaction action = {};
  action.sa_handler = NoteSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kStopSignals.size(); ++i) {
    PS_CHECK(sigaction(kStopSignals[i], &action, &old_[i]) == 0);
    const bool stays_ignored = kStopSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN;
    if (stays_ignored) sigaction(SIGHUP, &old_[i], nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kStopSignals.size(); ++i) sigaction(kStopSignals[i], &old_[i], nullptr);
  event_fd.store(-1);
  close(fd_);
}

int StopSignal::signal() const { return received_signal.load(); }

bool StopSignal::WaitFor(absl::Duration timeout) const {
  // The steady clock is used, since the time of day may be set back by hours.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (!stopped()) {
    const absl::Duration left = timeout - absl::FromChrono(Clock::now() - begin);
    if (left <= absl::ZeroDuration()) return false;
    // The wait is rounded up, so that the last one does not spin, and cut, because poll takes an
    // int.
    const absl::Duration step = std::min(absl::Ceil(left, absl::Milliseconds(1)), absl::Hours(1));
    pollfd waiting = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(step))) < 0) {
      PS_CHECK(errno == EINTR);
    }
  }
  return true;
}

}  // namespace slipstream
