#ifndef SLIPSTREAM_WORKER_ALGORITHM_WORKER_ALGORITHM_H_
#define SLIPSTREAM_WORKER_ALGORITHM_WORKER_ALGORITHM_H_

#include <cstdint>
#include <memory>

#include "common/layout/tensor_layout.h"
#include "common/settings/algorithm_rows.h"
#include "worker/algorithm/local_model.h"

namespace slipstream {

/// An algorithm decides what a worker does between pulling weights and the push that follows. The
/// mini-batches of one push are computed one after another, and the code that computes them calls
/// these functions.
///
/// An algorithm without local weights (AlgorithmRow::has_local_weights) is never called: its push
/// is the gradient of one mini-batch, which is sent while the backward pass goes on.
///
/// Thread-safe: const after construction.
class WorkerAlgorithm {
 public:
  /// One mini-batch of a push.
  struct Step {
    /// The number of earlier mini-batches of the same push, from 0.
    uint64_t number = 0;

    /// The learning rate of the run's optimizer, after its schedule.
    double learning_rate = 0;
  };

  virtual ~WorkerAlgorithm() = default;

  /// Called, by a row with keeps_weights, once before a push for the whole model: kLanding holds
  /// the servers' weights of now. The last mini-batch's gradient is there, and OnGradient is told
  /// of it next; but kGradient need not have it yet.
  ///
  /// Called, by an algorithm with fragments, when kLanding has got weights of a shard.
  /// `answers_push`: whether BeforePush was called for this range since the last landing there. The
  /// weights then answer that push, or follow on its refusal. Otherwise no push was on its way.
  virtual void OnLanding(LocalModel& /*model*/, ParameterRange /*range*/,
                         bool /*answers_push*/) const {}

  /// Called once before the steps of a push: all weights have arrived, and those of each shard are
  /// of one version, or else they are still those that the steps of the last push led to
  /// (AlgorithmRow::pushes_per_fetch). Called again if newer ones take their place before the first
  /// step. Weights that land apart may be taken over only after it.
  virtual void BeforeSteps(LocalModel& /*model*/) const {}

  /// Called when the gradient of a mini-batch, computed from the model's weights, is complete.
  /// Calls model.Step once, and nothing of the model after it.
  virtual void OnGradient(LocalModel& /*model*/, const Step& /*step*/) const {}

  /// Called after the last gradient before these values are pushed, which is the push's last one
  /// unless the algorithm has fragments. Writes the values to be pushed to kGradient; with
  /// fragments, to kAnchor.
  virtual void BeforePush(LocalModel& /*model*/, ParameterRange /*range*/) const {}

  /// Called, by a row with keeps_weights, when the last push had no effect on these weights of the
  /// servers.
  virtual void OnRefused(LocalModel& /*model*/, ParameterRange /*range*/) const {}
};

/// The settings of an algorithm.
struct AlgorithmOptions {
  AlgorithmParameters parameters;

  /// λ, the number of workers that the run is planned for.
  uint32_t workers = 1;

  /// The number of fragments in which the model is exchanged.
  uint32_t fragments = 1;
};

/// Returns the algorithm that a run asks for.
std::unique_ptr<const WorkerAlgorithm> MakeWorkerAlgorithm(AlgorithmKind kind,
                                                           const AlgorithmOptions& options = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_ALGORITHM_WORKER_ALGORITHM_H_
