#include "common/local/socket_watch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Clock::time_point kAsleep = Clock::time_point::min();
constexpr absl::Duration kLong = absl::Seconds(20);

/// Owns one end of a pair of sockets, and counts the calls of OnReadable.
class Counter final : public SocketWatch::Reader, public std::enable_shared_from_this<Counter> {
 public:
  explicit Counter(SocketWatch& watch) : socket(watch) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    mine_ = FileDescriptor(ends[0]);
    theirs = FileDescriptor(ends[1]);
  }
  ~Counter() override { socket.Unbind(); }

  bool TryToBind() { return socket.Bind(mine_, weak_from_this()); }
  void Bind() { ASSERT_TRUE(TryToBind()); }

  void OnReadable() override {
    char byte = 0;
    const ssize_t size = recv(mine_.get(), &byte, 1, MSG_DONTWAIT);
    MutexLock lock(mutex_);
    ++calls_;
    ended_ = ended_ || size == 0;
    changed_.NotifyAll();
  }

  void Write() { ASSERT_EQ(send(theirs.get(), "x", 1, 0), 1); }

  bool Awaits(int calls) {
    const auto end = std::chrono::steady_clock::now() + absl::ToChronoSeconds(kLong);
    MutexLock lock(mutex_);
    while (calls_ < calls) {
      if (!changed_.WaitUntil(mutex_, end)) return false;
    }
    return true;
  }
  int calls() {
    MutexLock lock(mutex_);
    return calls_;
  }
  bool ended() {
    MutexLock lock(mutex_);
    return ended_;
  }

  FileDescriptor theirs;
  SocketWatch::Socket socket;

 private:
  FileDescriptor mine_;
  Mutex mutex_;
  CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

/// Returns once the watch has done everything that was due before.
void PassThrough(SocketWatch& watch) {
  const auto other = std::make_shared<Counter>(watch);
  other->Bind();
  other->Write();
  other->socket.Arm(kAsleep);
  ASSERT_TRUE(other->Awaits(1));
}

TEST(SocketWatchTest, WhatCouldNotBeWatchedOnceMayBeLater) {
  SocketWatch watch(1);
  const auto counter = std::make_shared<Counter>(watch);
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, 3);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(counter->TryToBind()) << "there are no descriptors to be had";
  limit.rlim_cur = before;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);

  counter->Bind();
  counter->Write();
  counter->socket.Arm(kAsleep);

  EXPECT_TRUE(counter->Awaits(1));
}

TEST(SocketWatchTest, CallsOnceForEachTimeThatItIsArmed) {
  SocketWatch watch(1);
  const auto counter = std::make_shared<Counter>(watch);
  counter->Bind();
  counter->Write();
  counter->Write();
  PassThrough(watch);
  EXPECT_EQ(counter->calls(), 0);
  for (int i = 1; i <= 2; ++i) {
    counter->socket.Arm(kAsleep);
    ASSERT_TRUE(counter->Awaits(i));
    PassThrough(watch);
    EXPECT_EQ(counter->calls(), i);
  }
}

TEST(SocketWatchTest, CallsForWhatComesWhileItIsAwakeAndWhileItSleeps) {
  SocketWatch watch(1);
  const auto counter = std::make_shared<Counter>(watch);
  counter->Bind();
  for (int i = 1; i <= 100; ++i) {
    const bool stays_awake = i % 2 == 0;
    counter->socket.Arm(stays_awake ? Clock::now() + absl::ToChronoNanoseconds(kLong) : kAsleep);
    counter->Write();
    ASSERT_TRUE(counter->Awaits(i));
  }
}

TEST(SocketWatchTest, CallsWhenTheOtherEndIsGone) {
  SocketWatch watch(1);
  const auto counter = std::make_shared<Counter>(watch);
  counter->Bind();
  counter->theirs = FileDescriptor();
  PassThrough(watch);
  EXPECT_EQ(counter->calls(), 0);
  counter->socket.Arm(kAsleep);
  ASSERT_TRUE(counter->Awaits(1));
  EXPECT_TRUE(counter->ended());
}

TEST(SocketWatchTest, WhoDisarmsIsNotCalled) {
  SocketWatch watch(1);
  const auto counter = std::make_shared<Counter>(watch);
  counter->Bind();
  EXPECT_FALSE(counter->socket.Disarm());
  counter->socket.Arm(kAsleep);
  EXPECT_TRUE(counter->socket.Disarm());
  EXPECT_FALSE(counter->socket.Disarm());
  counter->Write();
  PassThrough(watch);
  EXPECT_EQ(counter->calls(), 0);
}

TEST(SocketWatchTest, EitherCallsOrIsDisarmed) {
  SocketWatch watch(1);
  const auto counter = std::make_shared<Counter>(watch);
  counter->Bind();
  int disarmed = 0;
  constexpr int kTimes = 2000;
  bool has_unread = false;
  for (int i = 0; i < kTimes; ++i) {
    if (!has_unread) counter->Write();
    counter->socket.Arm(kAsleep);
    if (i % 3 == 0) std::this_thread::yield();
    has_unread = counter->socket.Disarm();
    if (has_unread) ++disarmed;
    ASSERT_TRUE(counter->Awaits(i + 1 - disarmed));
  }
  PassThrough(watch);
  EXPECT_EQ(counter->calls(), kTimes - disarmed);
}

TEST(SocketWatchTest, AReaderThatIsGoneIsNotCalled) {
  SocketWatch watch(1);
  auto counter = std::make_shared<Counter>(watch);
  counter->Bind();
  counter->socket.Arm(kAsleep);
  FileDescriptor theirs = std::move(counter->theirs);
  const std::weak_ptr<Counter> gone = counter;
  counter.reset();
  PassThrough(watch);
  EXPECT_TRUE(gone.expired());
}

/// Drops the last reference to itself when it is called.
class Leaver final : public SocketWatch::Reader {
 public:
  Leaver(SocketWatch& watch, std::atomic<bool>& gone) : socket(watch), gone_(gone) {}
  ~Leaver() override {
    socket.Unbind();
    gone_ = true;
  }
  void OnReadable() override { self.reset(); }

  std::shared_ptr<Leaver> self;
  SocketWatch::Socket socket;

 private:
  std::atomic<bool>& gone_;
};

TEST(SocketWatchTest, AReaderIsKeptWhileItIsCalled) {
  SocketWatch watch(1);
  std::atomic<bool> gone = false;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const FileDescriptor mine(ends[0]);
  const FileDescriptor theirs(ends[1]);
  auto reader = std::make_shared<Leaver>(watch, gone);
  reader->self = reader;
  ASSERT_TRUE(reader->socket.Bind(mine, reader));
  ASSERT_EQ(send(theirs.get(), "x", 1, 0), 1);
  reader->socket.Arm(kAsleep);
  reader.reset();
  const absl::Time end = absl::Now() + kLong;
  while (!gone && absl::Now() < end) std::this_thread::yield();
  EXPECT_TRUE(gone);
}

TEST(SocketWatchTest, ServesMoreSocketsThanThreads) {
  SocketWatch watch(2);
  std::vector<std::shared_ptr<Counter>> counters;
  for (int i = 0; i < 50; ++i) {
    counters.push_back(std::make_shared<Counter>(watch));
    counters.back()->Bind();
    counters.back()->socket.Arm(kAsleep);
  }
  for (const auto& counter : counters) counter->Write();
  for (const auto& counter : counters) EXPECT_TRUE(counter->Awaits(1));
}

}  // namespace
}  // namespace slipstream
