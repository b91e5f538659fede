#ifndef SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_
#define SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "worker/client/gradient_client.h"
#include "worker/core/unit_queue.h"
#include "worker/training/nonfinite_steps.h"

namespace slipstream {

/// The figures that a worker reports: the training loop counts them, and its heartbeat reads them.
///
/// Compute and communication overlap. A step's compute time is the time of its plan, less the
/// plan's wait for weights. Its communication time is the time of its busiest lane, from the first
/// chunk of the push to the last weight, less the lane's wait for the gradient; it includes the
/// wait for the shard's answer, and so for a round. With free lanes it is the push alone: weights
/// come beside the steps. Communication is hidden while the computing thread does not stand still
/// for it, or for the copy of weights that came beside the steps.
///
/// Thread-safe: guarded by its own mutex.
class StepFigures {
 public:
  /// The number of last steps over which loss, accuracy and rate are taken.
  static constexpr size_t kWindowSteps = 50;

  /// The number of last steps whose lanes are reported, and the most lanes in all: with many shards
  /// fewer steps are reported.
  static constexpr size_t kStepsTold = 4;
  static constexpr size_t kLanesTold = 64;

  /// The number of steps after which the speed is known: the first ones alone take too long.
  static constexpr size_t kSpeedSteps = 8;

  struct Step {
    /// Counts from 1; steps that were given up leave gaps.
    uint64_t number = 0;
    uint64_t batch = 0;

    /// When the step's turn came: it began to wait for the answer to the slot's previous push.
    absl::Time turn;

    // Measured by the plan.
    absl::Time forward_begin;
    absl::Time forward_end;
    absl::Time backward_end;
    absl::Duration waited;  // The forward pass's wait for weights.

    absl::Duration update;  // The time of a local step's update, after the backward pass.

    /// How long the computing thread stood still before and after the step, for answers and
    /// weights.
    absl::Duration blocked;
    uint32_t examples = 0;

    /// The number of threads of the worker that take such steps at once. The worker's time is that
    /// share of a step's.
    uint32_t threads = 1;

    /// The number of mini-batches that the examples are of.
    uint64_t batches = 1;
    std::optional<uint32_t> correct;

    /// Absent if whoever computes does not tell it.
    std::optional<float> loss;
  };

  /// A step with the times of its lanes.
  struct StepLanes {
    Step step;
    std::vector<LaneTimes> lanes;  // Indexed by shard.
  };

  struct Figures {
    uint64_t steps = 0;
    uint64_t examples = 0;

    // Over the last kWindowSteps steps. recent_examples are those of the steps that have a loss.
    uint64_t recent_examples = 0;
    double examples_per_second = 0;
    double train_loss = 0;

    /// Mini-batches per second of computing, over the same steps; 0 before kSpeedSteps steps.
    /// Waiting does not count: a worker that pushes more often waits more, and would be told to
    /// push more often still.
    double steps_per_second = 0;

    /// Absent if the loss has no classes, and before the first step.
    std::optional<double> train_accuracy;

    /// Shares of the time since the first step began, each at most 1; together they may exceed it.
    double compute_share = 0;
    double communication_share = 0;

    /// 1 − communication that was not hidden / communication.
    double communication_hidden = 0;

    /// Compute / (compute + communication that was not hidden); and that of about the middle half
    /// of the steps, which holds neither the first weights nor the end of the work.
    double overlap = 0;
    double steady_overlap = 0;

    std::vector<StepLanes> recent;  // Newest last.
    std::vector<UnitProgress> progress;

    /// Pushes that counted at some shards and were dropped at others.
    uint64_t split_pushes = 0;

    /// Set if no push follows, and `progress` is final.
    bool is_done = false;

    NonfiniteSteps::Count nonfinite;
  };

  /// Notes a step whose gradient was computed and counts.
  void OnStep(const Step& step);

  /// Notes that the step's push was answered and all weights arrived. REQUIRES: OnStep was called
  /// for the step.
  void OnTransfer(GradientClient::Transfer transfer);
  void OnProgress(std::vector<UnitProgress> progress);
  void OnSplitPushes(uint64_t split_pushes);

  /// Notes that no push follows: rate and shares keep their values of time `now`.
  void OnDone(std::vector<UnitProgress> progress, absl::Time now);

  /// Notes that a step was left out, or that the first healthy one has followed.
  void OnNonfinite(const NonfiniteSteps::Count& count);

  Figures Read(absl::Time now) const;

 private:
  /// The most sums that are kept to find the middle half of the steps.
  static constexpr size_t kMarksMax = 64;

  /// Sums over the steps so far.
  struct Sums {
    absl::Duration compute;
    absl::Duration blocked;  // Communication that was not hidden.

    double Overlap() const;
    friend Sums operator-(const Sums& a, const Sums& b) {
      return {a.compute - b.compute, a.blocked - b.blocked};
    }
  };

  void Mark() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double Speed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadShares(absl::Time now, Figures& figures) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t examples_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time first_turn_ ABSL_GUARDED_BY(mutex_);
  absl::Duration communication_ ABSL_GUARDED_BY(mutex_);
  Sums sums_ ABSL_GUARDED_BY(mutex_);

  // The sums after each `stride_` steps.
  std::vector<Sums> marks_ ABSL_GUARDED_BY(mutex_);
  uint64_t stride_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<Step> window_ ABSL_GUARDED_BY(mutex_);
  std::deque<StepLanes> recent_ ABSL_GUARDED_BY(mutex_);
  std::vector<UnitProgress> progress_ ABSL_GUARDED_BY(mutex_);
  uint64_t split_pushes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time done_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  NonfiniteSteps::Count nonfinite_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_STEP_FIGURES_H_
