#include "common/process/stop_signal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace slipstream {
namespace {

constexpr absl::Duration kLongEnough = absl::Minutes(1);

void SendToThisProcess(int signal) { kill(getpid(), signal); }

TEST(StopSignalTest, IsNotStoppedBeforeASignal) {
  StopSignal stop;

  EXPECT_FALSE(stop.stopped());
  EXPECT_EQ(stop.signal(), 0);
  EXPECT_EQ(stop.ExitStatus(), 0);
  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(1)));
  EXPECT_FALSE(stop.WaitFor(-absl::InfiniteDuration()));
}

TEST(StopSignalTest, NotesASignalAndStaysReadable) {
  for (const int signal : {SIGINT, SIGTERM}) {
    StopSignal stop;

    SendToThisProcess(signal);

    EXPECT_TRUE(stop.WaitFor(kLongEnough));
    EXPECT_TRUE(stop.stopped());
    EXPECT_EQ(stop.signal(), signal);
    EXPECT_EQ(stop.ExitStatus(), 128 + signal);
    pollfd waiting = {.fd = stop.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&waiting, 1, 0), 1);
    EXPECT_EQ(poll(&waiting, 1, 0), 1);
  }
}

TEST(StopSignalTest, LeavesAHangUpIgnoredAsNohupWantsIt) {
  std::signal(SIGHUP, SIG_IGN);
  {
    StopSignal stop;

    SendToThisProcess(SIGHUP);

    EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(20)));
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(StopSignalTest, WakesEveryThreadThatWaits) {
  StopSignal stop;
  bool first = false;
  bool second = false;
  std::thread first_waiter([&] { first = stop.WaitFor(absl::InfiniteDuration()); });
  std::thread second_waiter([&] { second = stop.WaitFor(absl::Minutes(5)); });

  SendToThisProcess(SIGTERM);

  first_waiter.join();
  second_waiter.join();
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

TEST(StopSignalTest, APreemptionIsASignalThatTheNextOneDoesNotHurry) {
  StopSignal stop(StopSignal::OnPreemption::kStop);

  SendToThisProcess(SIGUSR1);
  ASSERT_TRUE(stop.WaitFor(kLongEnough));
  for (const int signal : {SIGUSR1, SIGTERM, SIGUSR1}) SendToThisProcess(signal);

  EXPECT_EQ(stop.signal(), SIGUSR1);
  EXPECT_EQ(stop.ExitStatus(), 128 + SIGUSR1);
}

TEST(StopSignalTest, IsFreshForTheNextOwner) {
  {
    StopSignal stop;
    SendToThisProcess(SIGINT);
    EXPECT_TRUE(stop.WaitFor(kLongEnough));
  }

  StopSignal stop;

  EXPECT_FALSE(stop.stopped());
  EXPECT_FALSE(stop.WaitFor(absl::ZeroDuration()));
}

// Otherwise the handler's frame overwrites what a library keeps where it points the stack pointer.
TEST(StopSignalTest, RunsNoHandlerOnAnyThread) {
  StopSignal stop;

  for (const int signal : kStopSignals) {
    struct sigaction now = {};
    ASSERT_EQ(sigaction(signal, nullptr, &now), 0);
    EXPECT_TRUE(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) << signal;
    sigset_t blocked;
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  }
}

// Programs that rotate logs send the first of these, and batch systems the others.
TEST(StopSignalDeathTest, WithoutATerminalGoesOnAfterSignalsOfOtherMeanings) {
  EXPECT_EXIT(
      {
        setsid();
        StopSignal stop;
        for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) SendToThisProcess(signal);
        _exit(stop.WaitFor(absl::Milliseconds(50)) ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(StopSignalDeathTest, StopsWhenItsTerminalHangsUp) {
  EXPECT_EXIT(
      {
        setsid();
        const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
        unlockpt(terminal);
        if (open(ptsname(terminal), O_RDWR) < 0) _exit(3);
        StopSignal stop;
        close(terminal);
        _exit(stop.WaitFor(kLongEnough) && stop.signal() == SIGHUP ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

/// Stops by a signal of its own, and ends with 0 once it has taken a SIGTERM of its parent, too, of
/// which a byte tells.
[[noreturn]] void StopTwice(int from_parent, int to_parent) {
  StopSignal stop;
  SendToThisProcess(SIGTERM);
  char byte = stop.WaitFor(kLongEnough) ? '1' : '0';
  if (write(to_parent, &byte, 1) != 1 || read(from_parent, &byte, 1) != 1) _exit(1);
  sigset_t pending;
  do {
    sigpending(&pending);
  } while (sigismember(&pending, SIGTERM) == 1);
  absl::SleepFor(absl::Milliseconds(20));  // It would end with 143 now.
  _exit(0);
}

TEST(StopSignalDeathTest, ASignalOfTheParentAfterOneOfOthersIsNoSecondOne) {
  EXPECT_EXIT(
      {
        int down[2];
        int up[2];
        if (pipe(down) != 0 || pipe(up) != 0) _exit(2);
        const pid_t child = fork();
        if (child == 0) StopTwice(down[0], up[1]);
        char byte = 0;
        if (read(up[0], &byte, 1) != 1 || byte != '1') _exit(3);
        kill(child, SIGTERM);
        if (write(down[1], &byte, 1) != 1) _exit(4);
        int status = 0;
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
      },
      testing::ExitedWithCode(0), "");
}

TEST(StopSignalDeathTest, EndsAtOnceOnASecondSignal) {
  EXPECT_EXIT(
      {
        StopSignal stop;
        SendToThisProcess(SIGTERM);
        stop.WaitFor(kLongEnough);
        SendToThisProcess(SIGINT);
        absl::SleepFor(kLongEnough);
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace slipstream
