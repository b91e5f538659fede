#include "common/process/stop_signal.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <thread>

#include "absl/time/time.h"

namespace slipstream {
namespace {

TEST(StopSignalTest, IsNotStoppedBeforeASignal) {
  StopSignal stop;

  EXPECT_FALSE(stop.stopped());
  EXPECT_EQ(stop.signal(), 0);
  EXPECT_EQ(stop.ExitStatus(), 0);
  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(1)));
  EXPECT_FALSE(stop.WaitFor(-absl::InfiniteDuration()));
}

TEST(StopSignalTest, NotesASignalAndStaysReadable) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    StopSignal stop;

    raise(signal);

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

    raise(SIGHUP);

    EXPECT_FALSE(stop.stopped());
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(StopSignalTest, WakesEveryThreadThatWaits) {
  StopSignal stop;
  bool first = false;
  bool second = false;
  std::thread first_waiter([&] { first = stop.WaitFor(absl::InfiniteDuration()); });
  std::thread second_waiter([&] { second = stop.WaitFor(absl::Minutes(5)); });

  raise(SIGTERM);

  first_waiter.join();
  second_waiter.join();
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

TEST(StopSignalTest, IsFreshForTheNextOwner) {
  {
    StopSignal stop;
    raise(SIGINT);
  }

  StopSignal stop;

  EXPECT_FALSE(stop.stopped());
  EXPECT_FALSE(stop.WaitFor(absl::ZeroDuration()));
}

TEST(StopSignalDeathTest, EndsAtOnceOnASecondSignal) {
  EXPECT_EXIT(
      {
        StopSignal stop;
        raise(SIGTERM);
        raise(SIGINT);
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace slipstream
