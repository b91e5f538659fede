#ifndef SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_
#define SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "worker/core/unit_queue.h"
#include "worker/training/nonfinite_steps.h"

namespace slipstream {

/// What a worker tells of itself: counted by the training loop, read by its heartbeat.
///
/// Thread-safe: guarded by its own mutex.
class StepFigures {
 public:
  /// Loss, accuracy and rate are those of the last so many steps.
  static constexpr size_t kWindowSteps = 50;

  struct Step {
    absl::Time end;
    absl::Duration compute;
    absl::Duration communication;
    uint32_t examples = 0;
    std::optional<uint32_t> correct;
    float loss = 0;
  };

  struct Figures {
    uint64_t pushes = 0;
    uint64_t examples = 0;
    double examples_per_second = 0;
    double train_loss = 0;

    /// Absent where the loss knows no classes, and before the first step.
    std::optional<double> train_accuracy;

    /// Of the time since the first step began.
    double compute_share = 0;
    double communication_share = 0;
    std::vector<UnitProgress> progress;

    /// No push follows, and `progress` is the last.
    bool is_done = false;

    NonfiniteSteps::Count nonfinite;
  };

  /// A step, its push included, has ended; `progress` holds with it.
  void OnStep(const Step& step, std::vector<UnitProgress> progress);
  void OnProgress(std::vector<UnitProgress> progress);

  /// No push follows.
  void OnDone(std::vector<UnitProgress> progress);

  /// A step was left out, or the first healthy one has followed.
  void OnNonfinite(const NonfiniteSteps::Count& count);

  Figures Read(absl::Time now) const;

 private:
  mutable Mutex mutex_;
  uint64_t pushes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t examples_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time first_begin_ ABSL_GUARDED_BY(mutex_);
  absl::Duration compute_ ABSL_GUARDED_BY(mutex_);
  absl::Duration communication_ ABSL_GUARDED_BY(mutex_);
  std::deque<Step> window_ ABSL_GUARDED_BY(mutex_);
  std::vector<UnitProgress> progress_ ABSL_GUARDED_BY(mutex_);
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
  NonfiniteSteps::Count nonfinite_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_
