#ifndef SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_
#define SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/kernels/rules/update_rule.h"
#include "common/layout/tensor_layout.h"
#include "common/run/run_spec.h"
#include "worker/algorithm/local_model.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// The local model of any plan, in the host's memory and on the thread that calls: on a processor
/// the plan's own arenas, elsewhere those through which weights and gradients come and go, so that
/// a step of a GPU costs two copies between it and the host.
///
/// Takes memory for the anchor and the optimizer's state, each as large as the model.
///
/// Not thread-safe: one owner, the plan's. No step of the plan may be under way in a call.
class HostModel final : public LocalModel {
 public:
  /// `plan` is of a net of this layout, and outlives the model.
  HostModel(const OptimizerSpec& optimizer, const TensorLayout& layout, Plan& plan);

  /// The optimizer's state is what it was before the first step.
  void ForgetState();

  void Step(double learning_rate) override;
  void Combine(Arena out, float a, Arena x, float b, Arena y) override;

 private:
  void UpdatePiece(ParameterRange piece, const StepSize& step);
  std::span<float> ValuesOf(Arena arena);

  // Constant after construction.
  const std::unique_ptr<const UpdateRule> rule_;
  const RuleRow& row_;
  Plan& plan_;

  /// The parts that the rule updates at a time: whole tensors, or pieces that stay in the cache.
  std::vector<ParameterRange> pieces_;

  std::vector<float> anchor_;
  std::array<std::vector<float>, kStateArraysMax> states_;
  RuleScalars scalars_;

  // The results of one piece, before they are written back: a rule reads what it does not write.
  std::vector<float> weights_out_;
  std::array<std::vector<float>, kStateArraysMax> states_out_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_
