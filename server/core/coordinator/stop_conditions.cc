#include "server/core/coordinator/stop_conditions.h"

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {

std::string_view Name(EndReason reason) {
  switch (reason) {
    case EndReason::kEpochs:
      return "epochs";
    case EndReason::kMaxSteps:
      return "max_steps";
    case EndReason::kMaxSeconds:
      return "max_seconds";
    case EndReason::kTargetAccuracy:
      return "target_accuracy";
    case EndReason::kInterrupted:
      return "interrupted";
    case EndReason::kWorker:
      return "worker";
    case EndReason::kTooFewWorkers:
      return "too_few_workers";
    case EndReason::kDiverged:
      return "diverged";
  }
  return "unknown";
}

uint64_t StopConditions::Steps(uint64_t batches_per_epoch) const {
  PS_CHECK(batches_per_epoch > 0);
  return training_.steps(batches_per_epoch);
}

EndReason StopConditions::ReasonOfLastStep(uint64_t batches_per_epoch) const {
  const uint64_t of_epochs = batches_per_epoch * training_.epochs;
  // Where workers choose their own mini-batches, max_steps may be what makes the epoch.
  const bool makes_epoch =
      training_.work == TrainingSpec::Work::kOwn && training_.max_steps == of_epochs;
  const bool is_cut = Steps(batches_per_epoch) < of_epochs || makes_epoch;
  return is_cut ? EndReason::kMaxSteps : EndReason::kEpochs;
}

std::optional<EndReason> StopConditions::EndsEarly(const Facts& facts) const {
  const bool has_target = training_.target_accuracy > 0;
  if (has_target && facts.accuracy.has_value() && *facts.accuracy >= training_.target_accuracy) {
    return EndReason::kTargetAccuracy;
  }
  const absl::Duration time_max = absl::Seconds(training_.max_seconds);
  if (training_.max_seconds > 0 && facts.trained >= time_max) return EndReason::kMaxSeconds;
  return std::nullopt;
}

}  // namespace slipstream
