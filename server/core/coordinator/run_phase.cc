#include "server/core/coordinator/run_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace slipstream {

absl::Status RunPhase::RefuseIfOver() const {
  if (phase_ == Phase::kFinished) {
    return absl::OutOfRangeError("the run has finished: there is nothing left to do");
  }
  if (phase_ == Phase::kFailed) return absl::AbortedError("the run failed: " + failure_);
  return absl::OkStatus();
}

absl::Status RunPhase::RefuseBeforeTraining() const {
  if (phase_ >= Phase::kTraining) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("training has not begun: the run is {}", Name(phase_)));
}

void RunPhase::MoveTo(Phase phase, absl::Time now) {
  PS_CHECK(phase > phase_);
  phase_ = phase;
  since_ = now;
  if (phase >= Phase::kEvaluating) trained_until_ = std::min(trained_until_, now);
}

void RunPhase::Fail(std::string reason, absl::Time now) {
  failure_ = std::move(reason);
  MoveTo(Phase::kFailed, now);
}

void RunPhase::TrainAgain(absl::Time now) {
  PS_CHECK(!IsOver());
  if (trained_until_ != absl::InfiniteFuture()) {
    training_began_ += now - std::exchange(trained_until_, absl::InfiniteFuture());
  }
  phase_ = Phase::kTraining;
  since_ = now;
}

absl::Duration RunPhase::TrainingTime(absl::Time now) const {
  if (training_began_ == absl::InfiniteFuture()) return absl::ZeroDuration();
  return std::min(now, trained_until_) - training_began_;
}

std::optional<int64_t> RunPhase::Trained(absl::Time now) const {
  if (training_began_ == absl::InfiniteFuture()) return std::nullopt;
  return absl::ToInt64Nanoseconds(TrainingTime(std::max(now, training_began_)));
}

void RunPhase::OnRestored(Phase phase, std::optional<int64_t> trained, absl::Time now) {
  phase_ = phase;
  start_ = since_ = now;
  if (trained.has_value()) training_began_ = now - absl::Nanoseconds(*trained);
  if (phase >= Phase::kEvaluating) trained_until_ = now;
}

}  // namespace slipstream
