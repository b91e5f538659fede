#ifndef SLIPSTREAM_WORKER_TRAINING_THREAD_MODEL_H_
#define SLIPSTREAM_WORKER_TRAINING_THREAD_MODEL_H_

#include <cstddef>
#include <span>

#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"
#include "worker/algorithm/local_model.h"
#include "worker/training/inner_rule.h"
#include "worker/training/shared_model.h"

namespace slipstream {

/// The local model as one of several threads changes it: weights and anchor are shared with the
/// other threads, the gradient is the thread's own, and there is no landing. Operations go block by
/// block, so those of two threads mix in the order in which they reach a block.
///
/// Not thread-safe: one owner, the thread. Other threads may use their models of the same weights
/// at the same time.
class ThreadModel final : public LocalModel {
 public:
  /// All arrays are as large as the model of this layout, and must outlive the object. REQUIRES:
  /// the optimizer's rule keeps no state, which every thread would keep for itself.
  ThreadModel(const OptimizerSpec& optimizer, const TensorLayout& layout, SharedModel& shared,
              std::span<float> anchor, std::span<float> gradient);

  void Step(double learning_rate) override;
  void CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b, Arena y) override;
  size_t parameters() const override { return anchor_.size(); }

 private:
  std::span<float> ValuesOf(Arena arena);

  InnerRule rule_;
  SharedModel& shared_;
  const std::span<float> anchor_;  // Each block under its lock of shared_.
  const std::span<float> gradient_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_THREAD_MODEL_H_
