#include "worker/core/call_tries.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

using News = Repetition::News;

const absl::Status kAway = absl::UnavailableError("connection refused");
const absl::Status kBusy = absl::ResourceExhaustedError("too many calls are waiting");

class CallTriesTest : public testing::Test {
 protected:
  /// Lets a try begin and fail at once.
  absl::StatusOr<Repetition> Fail(CallTries& tries, const absl::Status& failure = kAway) {
    tries.OnBegin(now_);
    return tries.OnFailure(failure, "the coordinator", now_);
  }

  const absl::Time start_ = absl::FromUnixSeconds(1'000'000);
  absl::Time now_ = start_;
  const RetryOptions options_{.first_wait = absl::Milliseconds(100),
                              .wait_max = absl::Milliseconds(800),
                              .give_up_after = absl::Seconds(10)};
};

TEST_F(CallTriesTest, WaitsDoubleUpToTheirMaximumWithJitterBelow) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    CallTries tries(options_, seed);
    for (const int milliseconds : {100, 200, 400, 800, 800, 800}) {
      const absl::Duration wait = Fail(tries)->wait;

      ASSERT_LE(wait, absl::Milliseconds(milliseconds));
      ASSERT_GE(wait, absl::Milliseconds(milliseconds) / 2);
    }
  }
}

TEST_F(CallTriesTest, ClientsThatFailTogetherDoNotComeBackTogether) {
  CallTries one(options_, 1);
  CallTries other(options_, 2);

  EXPECT_NE(Fail(one)->wait, Fail(other)->wait);
}

TEST_F(CallTriesTest, WhoHasTooMuchToDoIsAskedAgainOnlyAfterTheLongestWait) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    CallTries tries(options_, seed);

    ASSERT_GE(Fail(tries, kBusy)->wait, options_.wait_max / 2);
  }
}

TEST_F(CallTriesTest, GivesUpOnTimeAndNeverWaitsBeyondIt) {
  for (const absl::Status& failure : {kAway, kBusy}) {
    now_ = start_;
    CallTries tries(options_, 1);
    absl::StatusOr<Repetition> again = Fail(tries, failure);
    while (again.ok()) {
      now_ += again->wait;
      ASSERT_LE(now_, start_ + options_.give_up_after);
      again = Fail(tries, failure);
    }

    EXPECT_EQ(now_, start_ + options_.give_up_after);
    EXPECT_EQ(again.status().code(), failure.code());
  }
}

TEST_F(CallTriesTest, WhatIsGivenUpSaysForHowLongItWasTriedAndWhetherThePeerWasThere) {
  for (const auto& [failure, text] :
       {std::pair(kAway,
                  "the coordinator cannot be reached: connection refused (tried for 12.0 s)"),
        std::pair(kBusy,
                  "the coordinator has too much to do: too many calls are waiting (tried for "
                  "12.0 s)")}) {
    CallTries tries(options_, 1);
    ASSERT_TRUE(Fail(tries, failure).ok());
    now_ += absl::Seconds(12);

    EXPECT_EQ(Fail(tries, failure).status(), absl::Status(failure.code(), text));
  }
}

TEST_F(CallTriesTest, APeerThatWasReachedIsTriedForTheWholeTimeAgain) {
  CallTries tries(options_, 1);
  ASSERT_TRUE(Fail(tries).ok());
  now_ += absl::Seconds(9);

  EXPECT_TRUE(tries.OnReached());

  EXPECT_FALSE(tries.OnReached());
  ASSERT_TRUE(Fail(tries).ok());
  now_ += absl::Seconds(9);
  EXPECT_TRUE(Fail(tries).ok());
}

TEST_F(CallTriesTest, ATryThatTookLongWasNoAttemptToConnect) {
  CallTries tries(options_, 1);
  ASSERT_TRUE(Fail(tries).ok());
  tries.OnBegin(now_);
  now_ += absl::Minutes(1);

  const absl::StatusOr<Repetition> again = tries.OnFailure(kAway, "shard 0", now_);

  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->was_reached);
}

TEST_F(CallTriesTest, AMemberIsAsPatientAsItsLeaseIsLong) {
  EXPECT_EQ(MembersPatience(absl::Seconds(5)), absl::Seconds(30));
  EXPECT_EQ(MembersPatience(absl::Minutes(1)), absl::Minutes(3));
}

TEST_F(CallTriesTest, RepeatsOnlyWhatMaySucceedNextTime) {
  EXPECT_TRUE(IsTransient(kAway));
  EXPECT_TRUE(IsTransient(kBusy));
  EXPECT_TRUE(IsTransient(absl::DeadlineExceededError("")));
  EXPECT_FALSE(IsTransient(absl::OkStatus()));
  for (const absl::Status& failure : {absl::FailedPreconditionError("fenced"),
                                      absl::InvalidArgumentError(""), absl::AbortedError("")}) {
    CallTries tries(options_, 1);
    EXPECT_EQ(Fail(tries, failure).status(), failure);
  }
}

TEST_F(CallTriesTest, APeerThatIsStartingIsNoReasonToWarn) {
  CallTries tries(options_, 1);

  EXPECT_EQ(Fail(tries)->news, News::kFirst);
  now_ += absl::Seconds(4);
  EXPECT_EQ(Fail(tries)->news, News::kNone);
  now_ += absl::Seconds(2);
  EXPECT_EQ(Fail(tries)->news, News::kLong);
  EXPECT_EQ(Fail(tries)->news, News::kNone);
}

}  // namespace
}  // namespace slipstream
