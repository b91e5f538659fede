#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_STOP_CONDITIONS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_STOP_CONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Why a run's training ended.
enum class EndReason : uint8_t {
  kEpochs,
  kMaxSteps,
  kMaxSeconds,
  kTargetAccuracy,

  /// An operator ended training.
  kInterrupted,

  /// A worker's program did.
  kWorker,

  /// Fewer workers were left than the run needs. It fails once the servers have saved.
  kTooFewWorkers,

  /// Weights or gradients are not finite any more. The run fails.
  kDiverged,
};

/// Returns the name used in run.yaml, status and summary: "epochs", "max_steps", …
std::string_view Name(EndReason reason);

/// Decides by a run's settings when its training ends.
///
/// There are two kinds of condition. The number of worker steps is known beforehand: it bounds the
/// mini-batches that are handed out, so a run that ends by it does exactly so many, under every
/// policy, if no worker is lost. If a worker dies or is fenced, the mini-batches that it pushed and
/// no shard had reported yet are done again. Time and accuracy are known only as training goes on:
/// when one is reached, nothing more is handed out, and workers end with the step that they are at.
///
/// A worker step is one mini-batch whose gradient was pushed, whichever worker computed it.
///
/// Thread-safe: const after construction.
class StopConditions {
 public:
  struct Facts {
    /// How long the run has trained.
    absl::Duration trained;

    /// The test accuracy of the newest evaluation, in [0, 1]. Empty before the first.
    std::optional<double> accuracy;
  };

  explicit StopConditions(const TrainingSpec& training) : training_(training) {}

  /// Returns the number of worker steps of the whole run. REQUIRES: batches_per_epoch > 0.
  uint64_t Steps(uint64_t batches_per_epoch) const;

  /// Returns why a run ends once it has done all its steps.
  EndReason ReasonOfLastStep(uint64_t batches_per_epoch) const;

  /// Returns why training ends before its last step; nothing if it does not.
  std::optional<EndReason> EndsEarly(const Facts& facts) const;

 private:
  const TrainingSpec training_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_STOP_CONDITIONS_H_
