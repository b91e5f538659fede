#include "common/process/stop_signal.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

std::atomic<bool> exists = false;  // Signals belong to the process, so there can be only one.

FileDescriptor NewEvent() {
  FileDescriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  PS_CHECK(event.is_open());
  return event;
}

void Raise(const FileDescriptor& event) {
  const uint64_t one = 1;
  PS_CHECK(write(event.get(), &one, sizeof one) == sizeof one);
}

sigset_t AwaitedSignals() {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : kStopSignals) {
    struct sigaction now = {};
    PS_CHECK(sigaction(signal, nullptr, &now) == 0);
    // A blocked signal is kept for the watcher even if it is ignored, so nohup's is not awaited.
    if (signal != SIGHUP || now.sa_handler != SIG_IGN) sigaddset(&awaited, signal);
  }
  return awaited;
}

bool HasTerminal() { return FileDescriptor(open("/dev/tty", O_RDONLY | O_CLOEXEC)).is_open(); }

}  // namespace

StopSignal::StopSignal(OnPreemption on_preemption)
    : hang_up_stops_(HasTerminal()), event_(NewEvent()), quit_(NewEvent()) {
  PS_CHECK(!exists.exchange(true));
  for (const int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  sigset_t awaited = AwaitedSignals();
  if (on_preemption == OnPreemption::kStop) sigaddset(&awaited, SIGUSR1);
  FileDescriptor signals(signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
  PS_CHECK(signals.is_open());
  PS_CHECK(pthread_sigmask(SIG_BLOCK, &awaited, &old_mask_) == 0);
  watcher_ = std::thread([this, signals = std::move(signals)] { Watch(signals); });
}

StopSignal::~StopSignal() {
  Raise(quit_);
  watcher_.join();
  PS_CHECK(pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr) == 0);
  exists = false;
}

void StopSignal::Watch(const FileDescriptor& signals) {
  std::array<pollfd, 2> waiting = {{{.fd = quit_.get(), .events = POLLIN, .revents = 0},
                                    {.fd = signals.get(), .events = POLLIN, .revents = 0}}};
  while (true) {
    if (poll(waiting.data(), waiting.size(), -1) < 0) PS_CHECK(errno == EINTR);
    signalfd_siginfo received = {};
    while (read(signals.get(), &received, sizeof received) == sizeof received) {
      const int signal = static_cast<int>(received.ssi_signo);
      if (signal == SIGHUP && !hang_up_stops_) {
        LogWarning("SIGHUP is ignored: settings are read at the start alone; SIGTERM stops");
      } else {
        Note(signal, received.ssi_pid == static_cast<uint32_t>(getppid()));
      }
    }
    if (waiting[0].revents != 0) return;
  }
}

void StopSignal::Note(int signal, bool is_of_parent) {
  bool& has_asked = is_of_parent ? parent_has_asked_ : others_have_asked_;
  if (signal != SIGUSR1 && std::exchange(has_asked, true)) _exit(128 + signal);
  if (stopped()) return;
  signal_ = signal;
  Raise(event_);
}

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
    pollfd waiting = {.fd = fd(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(step))) < 0) {
      PS_CHECK(errno == EINTR);
    }
  }
  return true;
}

}  // namespace slipstream
