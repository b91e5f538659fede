#include "worker/core/push_verdict.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

struct Case {
  PushOutcome outcome;
  PushVerdict verdict;
  absl::StatusCode failure = absl::StatusCode::kOk;
};

class PushVerdictTest : public testing::TestWithParam<Case> {};

TEST_P(PushVerdictTest, EveryOutcomeHasItsMeaning) {
  const Case& c = GetParam();
  PushReply reply;
  reply.outcome = c.outcome;
  reply.message = "details";

  EXPECT_EQ(Judge(c.outcome), c.verdict);
  if (c.verdict != PushVerdict::kGiveUp) return;
  const absl::Status failure = Refusal(ShardId{3}, reply);
  EXPECT_EQ(failure.code(), c.failure);
  EXPECT_EQ(failure.message(),
            "shard 3 refused a push: " + std::string(Name(c.outcome)) + " (details)");
}

INSTANTIATE_TEST_SUITE_P(
    Outcomes, PushVerdictTest,
    testing::Values(
        Case{PushOutcome::kApplied, PushVerdict::kTaken},
        Case{PushOutcome::kBuffered, PushVerdict::kTaken},
        Case{PushOutcome::kDuplicate, PushVerdict::kTaken},
        Case{PushOutcome::kDroppedLate, PushVerdict::kTaken},
        Case{PushOutcome::kRetryLater, PushVerdict::kSendAgain},
        Case{PushOutcome::kNotCombined, PushVerdict::kSendAgain},
        Case{PushOutcome::kFutureVersion, PushVerdict::kPullAgain},
        Case{PushOutcome::kTooStale, PushVerdict::kPullAgain},
        Case{PushOutcome::kFenced, PushVerdict::kGiveUp, absl::StatusCode::kFailedPrecondition},
        Case{PushOutcome::kWrongRun, PushVerdict::kGiveUp, absl::StatusCode::kFailedPrecondition},
        Case{PushOutcome::kOutOfSequence, PushVerdict::kGiveUp, absl::StatusCode::kAborted},
        Case{PushOutcome::kNonfinite, PushVerdict::kGiveUp, absl::StatusCode::kInternal},
        Case{PushOutcome::kSequenceReused, PushVerdict::kGiveUp, absl::StatusCode::kInternal},
        Case{PushOutcome::kWrongShardMap, PushVerdict::kGiveUp, absl::StatusCode::kInternal},
        Case{PushOutcome::kShapeMismatch, PushVerdict::kGiveUp, absl::StatusCode::kInternal},
        Case{PushOutcome::kLengthMismatch, PushVerdict::kGiveUp, absl::StatusCode::kInternal}),
    [](const testing::TestParamInfo<Case>& c) { return std::string(Name(c.param.outcome)); });

}  // namespace
}  // namespace slipstream
