#include <optional>

#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

/// Recomputes the stop conditions from the events that the coordinator was told of.
class Stop {
 public:
  Stop(const Scenario& scenario, Findings& findings) : scenario_(scenario), findings_(findings) {}

  void OnPhase(const PhaseMade& made) {
    if (made.phase == Phase::kTraining) began_ = made.time;
  }
  void OnAccuracy(double accuracy) {
    // A measurement after the end of the work ends nothing.
    if (!ended_) is_reached_ = IsTarget(accuracy);
  }
  void OnEnd(const WorkEnded& end) {
    ended_ = true;
    if (!IsTrue(end)) findings_.Add("work ends for a reason that is none");
    if (TimeIsUp(end.time - kTick) && end.reason != EndReason::kMaxSeconds) {
      findings_.Add("work does not end when its time is up");
    }
    if (is_reached_ && end.reason != EndReason::kTargetAccuracy) {
      findings_.Add("work does not end when its target is reached");
    }
  }

 private:
  // The coordinator checks the time every 20 ms.
  static constexpr absl::Duration kTick = absl::Milliseconds(21);

  bool IsTarget(double accuracy) const {
    const double target = scenario_.run.training.target_accuracy;
    return target > 0 && accuracy >= target;
  }
  bool TimeIsUp(absl::Time now) const {
    const double seconds = scenario_.run.training.max_seconds;
    return seconds > 0 && began_.has_value() && now - *began_ >= absl::Seconds(seconds);
  }

  bool IsTrue(const WorkEnded& end) const {
    const uint32_t steps = scenario_.batches_per_epoch() * scenario_.run.training.epochs;
    switch (end.reason) {
      case EndReason::kEpochs:
        return scenario_.batches_total() == steps;
      case EndReason::kMaxSteps:
        return scenario_.batches_total() < steps;
      case EndReason::kMaxSeconds:
        return TimeIsUp(end.time);
      case EndReason::kTargetAccuracy:
        return is_reached_;
      case EndReason::kInterrupted:
        return false;  // No operator takes part in a simulation.
    }
    return false;
  }

  const Scenario& scenario_;
  Findings& findings_;
  std::optional<absl::Time> began_;
  bool is_reached_ = false;
  bool ended_ = false;
};

}  // namespace

void CheckStop(const Scenario& scenario, const History& history, Findings& findings) {
  Stop stop(scenario, findings);
  for (const Event& event : history.events) {
    if (const auto* phase = std::get_if<PhaseMade>(&event)) {
      stop.OnPhase(*phase);
    } else if (const auto* taken = std::get_if<AccuracyTaken>(&event)) {
      stop.OnAccuracy(taken->accuracy);
    } else if (const auto* end = std::get_if<WorkEnded>(&event)) {
      stop.OnEnd(*end);
    }
  }
}

}  // namespace slipstream
