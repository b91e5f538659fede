#ifndef SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_
#define SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/base/mutex.h"
#include "common/base/philox.h"
#include "common/protocol/batch_ranges.h"
#include "common/settings/worker_slowdown.h"
#include "worker/client/gradient_client.h"
#include "worker/client/parameter_client.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/training/batch_dealer.h"
#include "worker/training/batch_feed.h"
#include "worker/training/gradient_clip.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/local_exchange.h"
#include "worker/training/local_steps.h"
#include "worker/training/nonfinite_steps.h"
#include "worker/training/state_keeper.h"
#include "worker/training/step_figures.h"
#include "worker/training/thread_plans.h"
#include "worker/training/unit_fetcher.h"
#include "worker/training/work_source.h"

namespace slipstream {

/// Computes gradients until no work is left. In the meantime the client's threads send them and
/// bring the next weights.
///
/// There is one plan for each slot of the pipeline, and the plans take turns. With one, a step's
/// gradient is sent while the backward pass goes on, and the next step's forward pass goes on while
/// its weights arrive. With two, the exchange of one gradient goes on while the next is computed
/// from weights that arrived one step earlier; or, with free lanes, from the newest that have come
/// when its turn comes.
///
/// Local steps may be taken by several threads, which share the mini-batches of a push and the
/// weights (shared_model.h). The loop waits for all of them before it pushes, so a push and its
/// accounts are as with one thread.
///
/// Not thread-safe: one owner.
class TrainingLoop {
 public:
  struct Options {
    uint32_t batch_size = 32;

    /// The local steps of the only slot, if the run's algorithm has local weights; else null.
    LocalSteps* local_steps = nullptr;

    /// The client, if it is one of servers: local steps and free lanes use more of it. Null if
    /// workers reduce their gradients among themselves.
    ParameterClient* servers = nullptr;

    /// The threads that take the local steps, with their plans; null for this thread alone.
    ThreadPlans* threads = nullptr;

    uint64_t seed = 1;

    /// Gives each worker its own random delays.
    WorkerId worker{};

    /// How gradients are clipped before they are pushed, or before a local step.
    GradientClip clip{OptimizerSpec()};

    /// For tests: each push is delayed by a random time up to this.
    absl::Duration push_delay_max = absl::ZeroDuration();

    /// The slowdown of each mini-batch, for experiments.
    WorkerSlowdown slowdown;

    /// The number of non-finite steps in a row that is a failure; fewer are left out. ≥ 1.
    uint32_t nonfinite_max = 10;

    /// Saves the worker's state between pushes, if the run asks for that; else null.
    StateKeeper* state = nullptr;

    /// The encoding of the client's pushes: steps with values too large for it are left out, too.
    Encoding push_codec = Encoding::kFp32;
  };

  /// All arguments except `options` must outlive the loop. `plans` are those of the client's slots,
  /// or of the threads, in order. `units` is used only if the client needs units.
  TrainingLoop(const Options& options, const Dataset& train,
               std::span<const std::unique_ptr<Plan>> plans, GradientClient& client,
               UnitFetcher& units, const Heartbeat& heartbeat, StepFigures& figures,
               Interruption& interruption);

  /// Returns once this worker's share is done or the coordinator ends the work. CANCELLED if there
  /// is an interruption.
  absl::Status Run();

 private:
  // Nothing is pushed where weights were replaced in the meantime. `turn` is when the slot's turn
  // came.

  /// Pushes the gradient of one mini-batch, which is sent while it is computed.
  absl::Status PushGradient(uint32_t slot, uint64_t index, absl::Time turn);

  /// Takes local steps on these mini-batches and pushes their result.
  absl::Status PushLocalSteps(const BatchRanges& batches, absl::Time turn);

  /// Takes the steps on all threads, and exchanges the fragments that are due in between.
  absl::Status TakeLocalSteps(const BatchRanges& batches, absl::Time turn);

  /// Takes steps on one thread until all mini-batches of the push are dealt out. After a failure
  /// the others get no more, either.
  absl::Status TakeSteps(size_t thread, BatchDealer& dealer, const BatchRanges& batches,
                         absl::Time turn);

  /// Saves the worker's state if it is time: waits for the answers to all pushes, so that the state
  /// is that after them.
  absl::Status SaveState();

  /// Describes the push of `batches`, whose steps are taken or are being taken.
  GradientClient::Gradient GradientOf(const BatchRanges& batches) const;

  /// Takes one local step, of those for the push of `batches`. CANCELLED if the weights were
  /// replaced, or if the push is not wanted any more.
  absl::Status StepLocally(size_t thread, uint64_t index, const BatchRanges& batches,
                           absl::Time turn);

  StepFigures::Step BeginStep(uint64_t index, absl::Time turn);
  uint32_t ExamplesOf(const Batch& batch) const;

  /// Runs both parts of a step, and then waits for the time of the slowdown. `listener` may be
  /// null. CANCELLED if the weights were replaced or there is an interruption.
  absl::StatusOr<StepResult> Compute(Plan& plan, const Batch& batch, GradientListener* listener);

  /// Notes that a push with only finite values was made.
  void NoteHealthy();

  /// Notes that the step counts. `result` is the plan's.
  void OnStepDone(StepFigures::Step step, const StepResult& result);

  /// Delays the push, for tests, and prefetches a unit: the steps before a push that counts.
  absl::Status PrepareToPush();

  /// Counts a step that gave `what` instead of finite values; fails if there were too many.
  absl::Status NoteNonfinite(uint64_t index, const std::string& what);

  /// Leaves out the batches of the slot's aborted push.
  void LeaveOut(uint32_t slot);

  /// Makes the slot's next step wait for the weights of an answer, if these are what it computes
  /// from.
  void ExpectWeights(uint32_t slot);

  /// The facts that threads note of the local steps that count.
  struct Taken {
    uint64_t examples = 0;    // Of the steps since the last push.
    float loss = 0;           // That of the last step.
    uint64_t last_batch = 0;  // The mini-batch of the last step, also if it does not count.
  };
  Taken ReadTaken() const;

  // Constant after construction.
  const Options options_;
  const Dataset& train_;

  const std::span<const std::unique_ptr<Plan>> plans_;
  const uint32_t slots_;
  GradientClient& client_;
  WorkSource work_;
  const Heartbeat& heartbeat_;
  StepFigures& figures_;
  Interruption& interruption_;

  std::optional<LocalExchange> exchange_;  // Set if the worker takes local steps.

  std::vector<std::unique_ptr<BatchFeed>> feeds_;  // By plan.
  RandomStream delays_;
  std::atomic<uint64_t> steps_ = 0;  // The number of steps begun.

  mutable Mutex mutex_;  // For the threads that take local steps at once.
  NonfiniteSteps nonfinite_ ABSL_GUARDED_BY(mutex_);
  absl::Time warned_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  Taken taken_ ABSL_GUARDED_BY(mutex_);

  uint64_t last_over_ = 0;  // The last step that was pushed or left out.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_
