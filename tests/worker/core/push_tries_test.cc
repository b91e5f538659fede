#include "worker/core/push_tries.h"

#include <gtest/gtest.h>

#include "tests/worker/core/shard_answers.h"

namespace slipstream {
namespace {

using News = PushTries::AggregatorNews;
using Peer = PushTries::Peer;

const absl::Status kBroken = absl::UnavailableError("the stream broke");

class PushTriesTest : public testing::Test {
 protected:
  absl::StatusOr<PushTries::Next> Answer(PushTries& tries, PushOutcome outcome,
                                         uint32_t retry_after_ms = 0) {
    PushReply reply = Reply(outcome);
    reply.retry_after_ms = retry_after_ms;
    return tries.OnAnswer(reply, "shard 1", now_);
  }

  PushTries NewTries(bool has_values = true, bool is_composite = false) {
    return {{.overload_timeout = absl::Minutes(1)}, {has_values, is_composite}, &aggregator_};
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  AggregatorUse aggregator_;
};

TEST_F(PushTriesTest, AGradientGoesToTheAggregatorAndAnExcuseToTheShard) {
  EXPECT_EQ(NewTries().Begin(now_), Peer::kAggregator);
  EXPECT_EQ(NewTries(/*has_values=*/false).Begin(now_), Peer::kShard);
  EXPECT_EQ(PushTries({}, {.has_values = true}, nullptr).Begin(now_), Peer::kShard);
}

TEST_F(PushTriesTest, WhateverTheAggregatorRefusesGoesToTheShardAtOnce) {
  for (const PushOutcome outcome :
       {PushOutcome::kNotCombined, PushOutcome::kRetryLater, PushOutcome::kFenced}) {
    SCOPED_TRACE(Name(outcome));
    aggregator_ = AggregatorUse();
    PushTries tries = NewTries();
    ASSERT_EQ(tries.Begin(now_), Peer::kAggregator);

    const absl::StatusOr<PushTries::Next> next = Answer(tries, outcome, 500);

    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_FALSE(next->is_over);
    EXPECT_EQ(next->again.wait, absl::ZeroDuration());
    const bool is_failure = outcome != PushOutcome::kNotCombined;
    EXPECT_EQ(next->aggregator, is_failure ? News::kFailed : News::kNotCombined);
    EXPECT_EQ(aggregator_.IsUsable(now_), !is_failure);
    EXPECT_EQ(tries.Begin(now_), Peer::kShard);
  }
}

TEST_F(PushTriesTest, AnAggregatorThatAnswersAgainIsToldOfOnce) {
  EXPECT_TRUE(aggregator_.OnFailure(now_));
  now_ += AggregatorUse::kFirstPause;
  for (const News news : {News::kUsedAgain, News::kNone}) {
    PushTries tries = NewTries();
    ASSERT_EQ(tries.Begin(now_), Peer::kAggregator);
    EXPECT_EQ(Answer(tries, PushOutcome::kBuffered)->aggregator, news);
  }
}

TEST_F(PushTriesTest, ABusyShardIsWaitedForAsLongAsItAsks) {
  for (const PushOutcome outcome : {PushOutcome::kRetryLater, PushOutcome::kUnknownMember}) {
    PushTries tries({}, {.has_values = true}, nullptr);
    tries.Begin(now_);
    const absl::StatusOr<PushTries::Next> next = Answer(tries, outcome, 70);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(next->again.wait, absl::Milliseconds(70));
    EXPECT_FALSE(next->is_over || next->reopens);
  }
}

TEST_F(PushTriesTest, AShardThatIsBusyForTooLongIsGivenUpAndAFailureBeginsTheTimeAnew) {
  PushTries tries({.overload_timeout = absl::Minutes(1)}, {.has_values = true}, nullptr);
  tries.Begin(now_);
  ASSERT_TRUE(Answer(tries, PushOutcome::kRetryLater).ok());
  now_ += absl::Seconds(50);
  ASSERT_TRUE(tries.OnFailure(kBroken, "shard 1", now_)->reopens);
  tries.Begin(now_);
  ASSERT_TRUE(Answer(tries, PushOutcome::kRetryLater).ok());
  now_ += absl::Seconds(50);
  ASSERT_TRUE(Answer(tries, PushOutcome::kRetryLater).ok());
  now_ += absl::Seconds(20);

  EXPECT_EQ(Answer(tries, PushOutcome::kRetryLater).status(),
            absl::UnavailableError("shard 1 has been overloaded for 1m00s"));
}

TEST_F(PushTriesTest, NotCombinedIsAnAnswerToACompositeAlone) {
  for (const bool is_composite : {true, false}) {
    PushTries tries({}, {.has_values = true, .is_composite = is_composite}, nullptr);
    tries.Begin(now_);
    EXPECT_EQ(Answer(tries, PushOutcome::kNotCombined).ok(), is_composite);
  }
}

TEST_F(PushTriesTest, OtherRefusalsOfTheShardAreTheWorkers) {
  for (const PushOutcome outcome : {PushOutcome::kTooStale, PushOutcome::kFenced}) {
    PushTries tries({}, {.has_values = true}, nullptr);
    tries.Begin(now_);
    EXPECT_TRUE(Answer(tries, outcome)->is_over);
  }
}

}  // namespace
}  // namespace slipstream
