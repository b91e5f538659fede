#ifndef SLIPSTREAM_WORKER_TRAINING_LOCAL_STEPS_H_
#define SLIPSTREAM_WORKER_TRAINING_LOCAL_STEPS_H_

#include <cstdint>
#include <memory>

#include "common/layout/tensor_layout.h"
#include "common/policy/learning_rate.h"
#include "common/run/run_spec.h"
#include "worker/algorithm/worker_algorithm.h"
#include "worker/compute/plan.h"
#include "worker/training/host_model.h"

namespace slipstream {

/// The steps that a worker takes on weights of its own, between a pull and a push: its algorithm,
/// the model that this changes, and the schedule of the optimizer, which follows the numbers of
/// mini-batches.
///
/// Not thread-safe: one owner, the plan's.
class LocalSteps {
 public:
  /// For a plan of a net of this layout and a training set of so many examples; null where the
  /// run's algorithm has no local weights. `plan` must outlive it.
  static std::unique_ptr<LocalSteps> Make(const RunSpec& run, const TensorLayout& layout,
                                          uint64_t examples, Plan& plan);

  /// The weights of the next push have come.
  void Begin() { steps_ = 0; }

  /// The plan has the gradient of mini-batch `batch`.
  void OnGradient(uint64_t batch);

  /// Puts what is to be pushed in the place of the plan's gradients. REQUIRES: steps() > 0.
  void BeforePush() { algorithm_->BeforePush(model_); }

  /// The optimizer begins anew, as before the first step.
  void ForgetState() { model_.ForgetState(); }

  /// Taken since Begin.
  uint64_t steps() const { return steps_; }

 private:
  LocalSteps(const RunSpec& run, const TensorLayout& layout, uint64_t examples, Plan& plan);

  const std::unique_ptr<const WorkerAlgorithm> algorithm_;
  const uint64_t examples_;
  const uint64_t batch_size_;
  const LearningRate learning_rate_;
  HostModel model_;
  uint64_t steps_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_LOCAL_STEPS_H_
