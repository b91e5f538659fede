#include "common/rpc/steady_deadline.h"

#include <grpcpp/completion_queue.h>
#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(SteadyDeadlineTest, GoesByAClockThatNobodySets) {
  EXPECT_EQ(SteadyDeadline(SteadyNow() + absl::Hours(1)).clock_type, GPR_CLOCK_MONOTONIC);
  const absl::Time before = SteadyNow();
  EXPECT_LE(before, SteadyNow());
}

TEST(SteadyDeadlineTest, LiesAsFarAheadForGrpcAsForUs) {
  const absl::Time deadline = SteadyNow() + absl::Hours(1);
  const gpr_timespec left = gpr_time_sub(SteadyDeadline(deadline), gpr_now(GPR_CLOCK_MONOTONIC));
  EXPECT_LE(gpr_timespec_to_micros(left), 3600e6 + 1);
  EXPECT_GE(gpr_timespec_to_micros(left), absl::ToDoubleMicroseconds(deadline - SteadyNow()) - 1);
}

TEST(SteadyDeadlineTest, WhatIsOverEndsAWaitAtOnce) {
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  for (const absl::Time past : {absl::InfinitePast(), absl::UnixEpoch(), SteadyNow()}) {
    EXPECT_EQ(queue.AsyncNext(&tag, &ok, SteadyDeadline(past)), grpc::CompletionQueue::TIMEOUT);
  }
  queue.Shutdown();
  EXPECT_EQ(queue.AsyncNext(&tag, &ok, SteadyDeadline(absl::InfiniteFuture())),
            grpc::CompletionQueue::SHUTDOWN);
}

}  // namespace
}  // namespace slipstream
