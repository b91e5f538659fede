#ifndef SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_
#define SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/philox.h"
#include "worker/client/parameter_client.h"
#include "worker/compute/plan.h"
#include "worker/data/batch_order.h"
#include "worker/data/dataset.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/nonfinite_steps.h"
#include "worker/training/step_figures.h"
#include "worker/training/unit_fetcher.h"

namespace slipstream {

/// Pulls, computes and pushes until no work is left.
///
/// Not thread-safe: one owner.
class TrainingLoop {
 public:
  struct Options {
    uint32_t batch_size = 32;
    uint64_t seed = 1;

    /// Tells the random waits of workers apart.
    WorkerId worker{};

    /// For tests: each push waits a random time up to this.
    absl::Duration push_delay_max = absl::ZeroDuration();

    /// So many steps in a row without finite numbers are a failure; fewer are left out. ≥ 1.
    uint32_t nonfinite_max = 10;
  };

  /// All arguments must outlive it but `options`. `units` is asked only if the client needs units.
  TrainingLoop(const Options& options, const Dataset& train, Plan& plan, ParameterClient& client,
               UnitFetcher& units, const Heartbeat& heartbeat, StepFigures& figures,
               Interruption& interruption);

  /// Returns once this worker's share is done, or the coordinator ends the work. CANCELLED at an
  /// interruption.
  absl::Status Run();

 private:
  absl::Status AwaitUnit();
  absl::Status TakeUnit(const UnitFetcher::Result& result);
  absl::Status Prefetch();
  Batch Gather(uint64_t index);
  absl::Status Step(uint64_t index, absl::Duration pulled);
  absl::Status Push(uint64_t index, size_t examples);

  /// What becomes of a step that gave `what` instead of finite numbers.
  absl::Status LeaveOut(uint64_t index, const std::string& what);
  absl::Status Delay();

  // Constant after construction.
  const Options options_;
  const Dataset& train_;

  Plan& plan_;
  ParameterClient& client_;
  UnitFetcher& units_;
  const Heartbeat& heartbeat_;
  StepFigures& figures_;
  Interruption& interruption_;

  BatchOrder order_;
  RandomStream delays_;
  std::vector<float> examples_;  // Of the batch being computed.
  std::vector<uint32_t> labels_;
  std::vector<float> targets_;
  NonfiniteSteps nonfinite_;
  absl::Time warned_ = absl::InfinitePast();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TRAINING_LOOP_H_
