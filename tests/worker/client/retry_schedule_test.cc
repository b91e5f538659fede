#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/support/captured_log.h"
#include "tests/support/silent_port.h"
#include "worker/client/retries.h"

namespace slipstream {
namespace {

const absl::Status kAway = absl::UnavailableError("connection refused");
const absl::Status kBusy = absl::ResourceExhaustedError("too many calls are waiting");

class RetryScheduleTest : public testing::Test {
 protected:
  const absl::Time start_ = absl::FromUnixSeconds(1'000'000);
  absl::Time now_ = start_;
  const RetryOptions options_{.first_wait = absl::Milliseconds(100),
                              .wait_max = absl::Milliseconds(800),
                              .give_up_after = absl::Seconds(10),
                              .now = [this] { return now_; }};
};

TEST_F(RetryScheduleTest, WaitsDoubleUpToTheirMaximumWithJitterBelow) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RetrySchedule schedule(options_, seed);
    for (const int milliseconds : {100, 200, 400, 800, 800, 800}) {
      const absl::Duration wait = schedule.Next(kAway).value();

      ASSERT_LE(wait, absl::Milliseconds(milliseconds));
      ASSERT_GE(wait, absl::Milliseconds(milliseconds) / 2);
    }
  }
}

TEST_F(RetryScheduleTest, ClientsThatFailTogetherDoNotComeBackTogether) {
  RetrySchedule one(options_, 1);
  RetrySchedule other(options_, 2);

  EXPECT_NE(one.Next(kAway), other.Next(kAway));
}

TEST_F(RetryScheduleTest, WhoHasTooMuchToDoIsAskedAgainOnlyAfterTheLongestWait) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RetrySchedule schedule(options_, seed);

    ASSERT_GE(schedule.Next(kBusy).value(), options_.wait_max / 2);
  }
}

TEST_F(RetryScheduleTest, GivesUpOnTimeAndNeverWaitsBeyondIt) {
  for (const absl::Status& failure : {kAway, kBusy}) {
    now_ = start_;
    RetrySchedule schedule(options_, 1);
    while (const std::optional<absl::Duration> wait = schedule.Next(failure)) {
      now_ += *wait;
      ASSERT_LE(now_, start_ + options_.give_up_after);
    }

    EXPECT_EQ(now_, start_ + options_.give_up_after);
  }
}

TEST_F(RetryScheduleTest, WhatIsGivenUpSaysForHowLongItWasTriedAndWhetherThePeerWasThere) {
  const RetrySchedule schedule(options_, 1);
  now_ += absl::Seconds(12);

  EXPECT_EQ(schedule.GivenUp(kAway, "refused"),
            absl::UnavailableError("refused (tried for 12.0 s)"));
  EXPECT_EQ(schedule.GivenUp(kBusy, "busy"),
            absl::ResourceExhaustedError("busy (tried for 12.0 s)"));
}

TEST_F(RetryScheduleTest, AMemberIsAsPatientAsItsLeaseIsLong) {
  EXPECT_EQ(MembersPatience(absl::Seconds(5)), absl::Seconds(30));
  EXPECT_EQ(MembersPatience(absl::Minutes(1)), absl::Minutes(3));
}

TEST_F(RetryScheduleTest, RepeatsOnlyWhatMaySucceedNextTime) {
  EXPECT_TRUE(IsTransient(kAway));
  EXPECT_TRUE(IsTransient(kBusy));
  EXPECT_TRUE(IsTransient(absl::DeadlineExceededError("")));
  EXPECT_FALSE(IsTransient(absl::OkStatus()));
  EXPECT_FALSE(IsTransient(absl::FailedPreconditionError("")));
  EXPECT_FALSE(IsTransient(absl::InvalidArgumentError("")));
  EXPECT_FALSE(IsTransient(absl::AbortedError("")));
}

TEST_F(RetryScheduleTest, APeerThatIsStartingIsNoReasonToWarn) {
  CapturedLog log;
  const SilentPort port;
  const CalledPeer coordinator = {
      "the coordinator", grpc::CreateChannel(port.address(), grpc::InsecureChannelCredentials())};
  const Sleeper sleeper = [](absl::Duration) { return true; };
  const RetryOptions options = {.first_wait = absl::ZeroDuration(),
                                .wait_max = absl::ZeroDuration(),
                                .give_up_after = absl::Seconds(10),
                                .now = [this] { return now_; }};
  Retries retries(coordinator, options, 1, sleeper);

  retries.Begin();
  ASSERT_TRUE(retries.Await(kAway).ok());
  now_ += absl::Seconds(4);
  retries.Begin();
  ASSERT_TRUE(retries.Await(kAway).ok());

  EXPECT_EQ(log.Count("waiting until it is ready"), 1);
  EXPECT_EQ(log.Count("cannot be reached"), 0);

  now_ += absl::Seconds(2);
  for (int call = 0; call < 2; ++call) {
    retries.Begin();
    ASSERT_TRUE(retries.Await(kAway).ok());
  }

  EXPECT_EQ(log.Count("cannot be reached, trying again"), 1);
}

}  // namespace
}  // namespace slipstream
