#include "worker/core/push_tries.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/base/duration_text.h"
#include "worker/core/push_verdict.h"

namespace slipstream {

PushTries::PushTries(const Options& options, const Push& push, AggregatorUse* aggregator)
    : overload_timeout_(options.overload_timeout),
      push_(push),
      aggregator_(aggregator),
      tries_(options.retry, options.seed) {}

PushTries::Peer PushTries::Begin(absl::Time now) {
  const bool may_combine = aggregator_ != nullptr && push_.has_values && !is_for_shard_;
  peer_ = may_combine && aggregator_->IsUsable(now) ? Peer::kAggregator : Peer::kShard;
  tries_.OnBegin(now);
  return peer_;
}

absl::StatusOr<PushTries::Next> PushTries::OnAnswer(const PushReply& reply, absl::string_view shard,
                                                    absl::Time now) {
  if (peer_ == Peer::kAggregator) return OnAggregatorAnswer(reply, now);
  const bool is_back = tries_.OnReached();
  const bool is_not_combined = reply.outcome == PushOutcome::kNotCombined;
  if (is_not_combined && !push_.is_composite) {
    return absl::InternalError("answer: NOT_COMBINED to the push of one worker");
  }
  if (is_not_combined || Judge(reply.outcome) != PushVerdict::kSendAgain) {
    return Next{.is_over = true, .is_back = is_back};
  }
  if (!overload_end_.has_value()) overload_end_ = now + overload_timeout_;
  if (now > *overload_end_) {
    return absl::UnavailableError(fmt::format("{} has been overloaded for {}", std::string(shard),
                                              DurationText(overload_timeout_)));
  }
  return Next{.again = {.wait = absl::Milliseconds(std::max(1u, reply.retry_after_ms))},
              .is_back = is_back};
}

PushTries::Next PushTries::OnAggregatorAnswer(const PushReply& reply, absl::Time now) {
  if (IsRefusal(reply.outcome)) {
    return LeaveAggregator(aggregator_->OnRefusal(reply.outcome), now);
  }
  const bool had_failed = aggregator_->OnAnswer();
  return {.is_over = true,
          .aggregator = had_failed ? AggregatorNews::kUsedAgain : AggregatorNews::kNone};
}

absl::StatusOr<PushTries::Next> PushTries::OnFailure(const absl::Status& failure,
                                                     absl::string_view shard, absl::Time now) {
  overload_end_.reset();
  if (peer_ == Peer::kAggregator) return LeaveAggregator(/*is_failure=*/true, now);
  const absl::StatusOr<Repetition> again = tries_.OnFailure(failure, shard, now);
  if (!again.ok()) return again.status();
  return Next{.again = *again, .reopens = true};
}

PushTries::Next PushTries::LeaveAggregator(bool is_failure, absl::Time now) {
  is_for_shard_ = true;
  if (!is_failure) return {.aggregator = AggregatorNews::kNotCombined};
  return {.aggregator = AggregatorNews::kFailed, .is_first_failure = aggregator_->OnFailure(now)};
}

}  // namespace slipstream
