#include "worker/core/aggregator_use.h"

#include <algorithm>

namespace slipstream {

bool AggregatorUse::OnFailure(absl::Time now) {
  const bool is_first = next_pause_ == kFirstPause;
  paused_until_ = now + next_pause_;
  next_pause_ = std::min(2 * next_pause_, kPauseMax);
  return is_first;
}

bool AggregatorUse::OnRefusal(PushOutcome outcome) {
  return outcome != PushOutcome::kNotCombined || ++not_combined_ >= kNotCombinedMax;
}

bool AggregatorUse::OnAnswer() {
  const bool had_failed = next_pause_ != kFirstPause;
  next_pause_ = kFirstPause;
  not_combined_ = 0;
  return had_failed;
}

}  // namespace slipstream
