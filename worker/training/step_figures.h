#ifndef SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_
#define SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "worker/client/parameter_client.h"
#include "worker/core/unit_queue.h"
#include "worker/training/nonfinite_steps.h"

namespace slipstream {

/// What a worker tells of itself: counted by the training loop, read by its heartbeat.
///
/// Compute and communication overlap. A step's compute time is what its plan took, less what it
/// waited for weights. Its communication time is that of its busiest lane: from handing over the
/// first chunk of the push to the last weight, less what the lane waited for the gradient; waiting
/// for the shard's answer, and so for a round, counts. Of that, hidden is what the computing thread
/// did not stand still for.
///
/// Thread-safe: guarded by its own mutex.
class StepFigures {
 public:
  /// Loss, accuracy and rate are those of the last so many steps.
  static constexpr size_t kWindowSteps = 50;

  /// Of so many last steps the lanes are told, or fewer: not more than so many lanes in all.
  static constexpr size_t kStepsTold = 4;
  static constexpr size_t kLanesTold = 64;

  struct Step {
    /// From 1 on; those given up leave gaps.
    uint64_t number = 0;
    uint64_t batch = 0;

    /// When its turn came: it began to wait for the answer to the slot's push before.
    absl::Time turn;

    // Of the plan.
    absl::Time forward_begin;
    absl::Time forward_end;
    absl::Time backward_end;
    absl::Duration waited;  // Of forward, for weights.

    /// The computing thread stood still for so long before and after, for answers and weights.
    absl::Duration blocked;
    uint32_t examples = 0;
    std::optional<uint32_t> correct;
    float loss = 0;
  };

  /// The lanes of a step.
  struct StepLanes {
    Step step;
    std::vector<LaneTimes> lanes;  // By shard.
  };

  struct Figures {
    uint64_t steps = 0;
    uint64_t examples = 0;

    // Of the last kWindowSteps steps.
    uint64_t recent_examples = 0;
    double examples_per_second = 0;
    double train_loss = 0;

    /// Absent where the loss knows no classes, and before the first step.
    std::optional<double> train_accuracy;

    /// Of the time since the first step began; they may add up to more than that.
    double compute_share = 0;
    double communication_share = 0;

    /// 1 − communication that was not hidden / communication.
    double communication_hidden = 0;

    /// Compute / (compute + communication that was not hidden).
    double overlap = 0;

    std::vector<StepLanes> recent;  // Newest last.
    std::vector<UnitProgress> progress;

    /// Pushes that counted at some shards and were dropped at others.
    uint64_t split_pushes = 0;

    /// No push follows, and `progress` is the last.
    bool is_done = false;

    NonfiniteSteps::Count nonfinite;
  };

  /// A gradient was computed and counts.
  void OnStep(const Step& step);

  /// Its push was answered and all weights came. REQUIRES: OnStep has told of the step.
  void OnTransfer(ParameterClient::Transfer transfer);
  void OnProgress(std::vector<UnitProgress> progress);
  void OnSplitPushes(uint64_t split_pushes);

  /// No push follows: rate and shares stay what they are `now`.
  void OnDone(std::vector<UnitProgress> progress, absl::Time now);

  /// A step was left out, or the first healthy one has followed.
  void OnNonfinite(const NonfiniteSteps::Count& count);

  Figures Read(absl::Time now) const;

 private:
  void ReadShares(absl::Time now, Figures& figures) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t examples_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time first_turn_ ABSL_GUARDED_BY(mutex_);
  absl::Duration compute_ ABSL_GUARDED_BY(mutex_);
  absl::Duration communication_ ABSL_GUARDED_BY(mutex_);
  absl::Duration blocked_ ABSL_GUARDED_BY(mutex_);  // Not hidden.
  std::deque<Step> window_ ABSL_GUARDED_BY(mutex_);
  std::deque<StepLanes> recent_ ABSL_GUARDED_BY(mutex_);
  std::vector<UnitProgress> progress_ ABSL_GUARDED_BY(mutex_);
  uint64_t split_pushes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time done_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  NonfiniteSteps::Count nonfinite_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_
