#include "worker/core/push_verdict.h"

#include <string>

#include "common/base/check.h"

namespace slipstream {
namespace {

absl::StatusCode RefusalCode(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kFenced:
    case PushOutcome::kWrongRun:
      return absl::StatusCode::kFailedPrecondition;
    case PushOutcome::kOutOfSequence:
      return absl::StatusCode::kAborted;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

PushVerdict Judge(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kApplied:
    case PushOutcome::kBuffered:
    case PushOutcome::kDuplicate:
    case PushOutcome::kDroppedLate:
      return PushVerdict::kTaken;
    case PushOutcome::kRetryLater:
    // Another peer may have been told of this incarnation before the shard was.
    case PushOutcome::kUnknownMember:
    case PushOutcome::kNotCombined:
      return PushVerdict::kSendAgain;
    case PushOutcome::kFutureVersion:
    case PushOutcome::kTooStale:
      return PushVerdict::kPullAgain;
    case PushOutcome::kFenced:
    case PushOutcome::kOutOfSequence:
    case PushOutcome::kSequenceReused:
    case PushOutcome::kWrongRun:
    case PushOutcome::kWrongShardMap:
    case PushOutcome::kShapeMismatch:
    case PushOutcome::kLengthMismatch:
    case PushOutcome::kNonfinite:
    case PushOutcome::kTooManyExamples:
      return PushVerdict::kGiveUp;
  }
  return PushVerdict::kGiveUp;
}

absl::Status Refusal(ShardId shard, const PushReply& reply) {
  PS_CHECK(Judge(reply.outcome) == PushVerdict::kGiveUp);
  std::string text = "shard " + std::to_string(Value(shard)) + " refused a push: ";
  text += Name(reply.outcome);
  if (!reply.message.empty()) text += " (" + reply.message + ")";
  return {RefusalCode(reply.outcome), text};
}

absl::Status CheckRepeated(ShardId shard, const PushReply& reply) {
  switch (Judge(reply.outcome)) {
    case PushVerdict::kTaken:
    case PushVerdict::kSendAgain:
      return absl::OkStatus();
    case PushVerdict::kGiveUp:
      return Refusal(shard, reply);
    case PushVerdict::kPullAgain:
      break;
  }
  std::string text = "shard " + std::to_string(Value(shard)) + " took a push and then said ";
  text += Name(reply.outcome);
  return absl::AbortedError(text + " of it: it does not remember the push");
}

}  // namespace slipstream
