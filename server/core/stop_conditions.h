#ifndef SLIPSTREAM_SERVER_CORE_STOP_CONDITIONS_H_
#define SLIPSTREAM_SERVER_CORE_STOP_CONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// Why a run's training ended.
enum class EndReason : uint8_t {
  kEpochs,
  kMaxSteps,
  kMaxSeconds,
  kTargetAccuracy,
};

/// As in run.yaml, status and summary: "epochs", "max_steps", …
std::string_view Name(EndReason reason);

/// What ends the training of a run, out of its settings.
///
/// There are two kinds. The number of worker steps is known beforehand: it bounds the mini-batches
/// that are handed out, so a run that ends by it does exactly so many, under every policy, if no
/// worker is lost: what one pushed that then died or was fenced, and no shard had reported yet, is
/// done again. Time and accuracy show themselves as training goes on: nothing more is handed out
/// then, and workers end with the step they are at.
///
/// A worker step is one mini-batch whose gradient was pushed, whichever worker computed it.
///
/// Thread-safe: const after construction.
class StopConditions {
 public:
  struct Facts {
    /// Since training began.
    absl::Duration trained;

    /// Of the newest evaluation, in [0, 1]; nothing before the first.
    std::optional<double> accuracy;
  };

  explicit StopConditions(const TrainingSpec& training) : training_(training) {}

  /// The worker steps of the whole run. REQUIRES: batches_per_epoch > 0.
  uint64_t Steps(uint64_t batches_per_epoch) const;

  /// Why a run ends that has done all its steps.
  EndReason ReasonOfLastStep(uint64_t batches_per_epoch) const;

  /// Whether training ends before its last step, and why.
  std::optional<EndReason> EndsEarly(const Facts& facts) const;

 private:
  const TrainingSpec training_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_STOP_CONDITIONS_H_
