#include "worker/python/operations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace slipstream {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

TEST(OperationsTest, WorkIsDoneInOrder) {
  std::vector<int> done;
  Operations operations;
  std::shared_ptr<Operation> last;
  for (int i = 0; i < 100; ++i) {
    last = operations.Begin([&done, i] {
      done.push_back(i);
      return absl::OkStatus();
    });
  }

  ASSERT_TRUE(last->Wait(kLong));

  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
}

TEST(OperationsTest, AFailureOrAnExceptionIsTheOperations) {
  Operations operations;
  const auto failed = operations.Begin([] { return absl::AbortedError("broken"); });
  const auto threw =
      operations.Begin([]() -> absl::Status { throw std::runtime_error("no memory"); });

  ASSERT_TRUE(failed->Wait(kLong));
  ASSERT_TRUE(threw->Wait(kLong));

  EXPECT_EQ(failed->status(), absl::AbortedError("broken"));
  EXPECT_EQ(threw->status(), absl::InternalError("exception: no memory"));
}

TEST(OperationsTest, AWaitEndsInTimeAndTheWorkGoesOn) {
  Mutex mutex;
  CondVar changed;
  bool may_end = false;
  Operations operations;
  const auto operation = operations.Begin([&] {
    MutexLock lock(mutex);
    while (!may_end) changed.Wait(mutex);
    return absl::OkStatus();
  });

  EXPECT_FALSE(operation->Wait(absl::ZeroDuration()));
  EXPECT_FALSE(operation->Wait(absl::Milliseconds(1)));
  {
    MutexLock lock(mutex);
    may_end = true;
    changed.NotifyAll();
  }

  EXPECT_TRUE(operation->Wait(kLong));
}

TEST(OperationsTest, WhatHasNotBegunWhenItEndsIsCancelled) {
  std::shared_ptr<Operation> second;
  std::atomic<bool> has_second = false;
  std::atomic<bool> has_begun = false;
  std::shared_ptr<Operation> first;
  {
    Operations operations;
    // The first ends after the second, which does not begin before.
    first = operations.Begin([&] {
      has_begun = true;
      while (!has_second) std::this_thread::yield();
      return second->Wait(kLong) ? absl::OkStatus() : absl::DeadlineExceededError("no end");
    });
    second = operations.Begin([] { return absl::OkStatus(); });
    has_second = true;
    while (!has_begun) std::this_thread::yield();
  }

  EXPECT_TRUE(first->status().ok());
  ASSERT_TRUE(second->is_over());
  EXPECT_TRUE(absl::IsCancelled(second->status()));
}

}  // namespace
}  // namespace slipstream
