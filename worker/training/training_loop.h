#ifndef SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_
#define SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/base/philox.h"
#include "common/protocol/batch_ranges.h"
#include "worker/client/parameter_client.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/training/batch_feed.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/local_steps.h"
#include "worker/training/nonfinite_steps.h"
#include "worker/training/step_figures.h"
#include "worker/training/unit_fetcher.h"

namespace slipstream {

/// Computes gradients until no work is left; the client's lanes push them, and bring the next
/// weights, meanwhile.
///
/// One plan for each slot of the pipeline, which take turns. With one, a step's gradient leaves
/// while backward goes on, and the next step's forward goes on while its weights arrive. With two,
/// the exchange of one gradient goes on while the next is computed from weights that came one step
/// earlier.
///
/// Not thread-safe: one owner.
class TrainingLoop {
 public:
  struct Options {
    uint32_t batch_size = 32;

    /// The local steps of the one plan, where the run's algorithm has local weights; else null.
    LocalSteps* local_steps = nullptr;

    uint64_t seed = 1;

    /// Tells the random waits of workers apart.
    WorkerId worker{};

    /// For tests: each push waits a random time up to this.
    absl::Duration push_delay_max = absl::ZeroDuration();

    /// So many steps in a row without finite numbers are a failure; fewer are left out. ≥ 1.
    uint32_t nonfinite_max = 10;

    /// How the client's pushes travel: what it has no room for is left out, too.
    Encoding push_codec = Encoding::kFp32;
  };

  /// All arguments must outlive it but `options`. `plans` are those of the client's slots, in
  /// order. `units` is asked only if the client needs units.
  TrainingLoop(const Options& options, const Dataset& train,
               std::span<const std::unique_ptr<Plan>> plans, ParameterClient& client,
               UnitFetcher& units, const Heartbeat& heartbeat, StepFigures& figures,
               Interruption& interruption);

  /// Returns once this worker's share is done, or the coordinator ends the work. CANCELLED at an
  /// interruption.
  absl::Status Run();

 private:
  /// True once every slot was told that nothing is left for it.
  bool IsOver(uint32_t finished_slot);
  absl::Status AwaitUnit();
  absl::Status TakeUnit(const UnitFetcher::Result& result);
  absl::Status Prefetch();

  /// Pushes what is computed from these mini-batches, unless its weights were replaced
  /// meanwhile; `turn` is when the slot's turn came.
  absl::Status Push(uint32_t slot, const BatchRanges& batches, absl::Time turn);

  /// Pushes the gradient of one mini-batch, which leaves while it is computed.
  absl::Status PushGradient(uint32_t slot, uint64_t index, absl::Time turn);

  /// Pushes what local steps have come to.
  absl::Status PushLocalSteps(const BatchRanges& batches, absl::Time turn);

  /// Takes one of them. CANCELLED if the weights were replaced.
  absl::Status StepLocally(uint64_t index, absl::Time turn);

  StepFigures::Step BeginStep(uint64_t index, absl::Time turn);
  uint32_t ExamplesOf(const Batch& batch) const;

  /// Runs both parts of a step; `listener` may be null.
  absl::StatusOr<StepResult> Compute(Plan& plan, const Batch& batch, GradientListener* listener);

  /// A push without anything that is not finite has gone.
  void NoteHealthy();

  /// The step counts. `result` is the plan's.
  void OnStepDone(StepFigures::Step step, const StepResult& result);

  /// What has to be done and asked before a computed gradient may count.
  absl::Status PrepareToPush();

  /// Counts a step that gave `what` instead of finite numbers; fails if there were too many.
  absl::Status NoteNonfinite(uint64_t index, const std::string& what);

  /// The batches of the slot's aborted push are left out.
  void LeaveOut(uint32_t slot);
  absl::Status Drain();

  /// Hands on what lanes have done.
  void TellFigures();
  absl::Status Delay();

  // Constant after construction.
  const Options options_;
  const Dataset& train_;

  const std::span<const std::unique_ptr<Plan>> plans_;
  ParameterClient& client_;
  UnitFetcher& units_;
  const Heartbeat& heartbeat_;
  StepFigures& figures_;
  Interruption& interruption_;

  std::vector<std::unique_ptr<BatchFeed>> feeds_;  // By slot.
  RandomStream delays_;
  NonfiniteSteps nonfinite_;
  absl::Time warned_ = absl::InfinitePast();
  uint64_t steps_ = 0;           // Begun.
  uint64_t local_examples_ = 0;  // Of the local steps since the last push.
  float local_loss_ = 0;         // Of the last one.
  uint64_t last_over_ = 0;       // The last of these that was pushed or left out.
  std::vector<bool> finished_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_
