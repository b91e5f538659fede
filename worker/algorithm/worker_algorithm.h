#ifndef SLIPSTREAM_WORKER_ALGORITHM_WORKER_ALGORITHM_H_
#define SLIPSTREAM_WORKER_ALGORITHM_WORKER_ALGORITHM_H_

#include <cstdint>
#include <memory>

#include "common/run/algorithm_rows.h"
#include "worker/algorithm/local_model.h"

namespace slipstream {

/// An algorithm says what a worker does between the weights it pulls and the push that follows. The
/// mini-batches of one push are computed one after another; whoever computes calls what is here.
///
/// An algorithm without local weights (AlgorithmRow::has_local_weights) is not called: its push is
/// the gradient of one mini-batch, which leaves while backward goes on.
///
/// Thread-safe: const after construction.
class WorkerAlgorithm {
 public:
  /// One mini-batch of a push.
  struct Step {
    /// How many of the same push came before it, from 0.
    uint64_t number = 0;

    /// The rate of the run's optimizer, after its schedule.
    double learning_rate = 0;
  };

  virtual ~WorkerAlgorithm() = default;

  /// The gradient of a mini-batch is there, computed from the model's weights.
  virtual void OnGradient(LocalModel& /*model*/, const Step& /*step*/) const {}

  /// The last gradient of the push was there: puts what is to be pushed in its place.
  virtual void BeforePush(LocalModel& /*model*/) const {}
};

/// The algorithm that a run asks for.
std::unique_ptr<const WorkerAlgorithm> MakeWorkerAlgorithm(AlgorithmKind kind);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_ALGORITHM_WORKER_ALGORITHM_H_
