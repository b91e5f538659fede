#ifndef SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_
#define SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/kernels/rules/tensor_rules.h"
#include "common/kernels/rules/update_rule.h"
#include "common/layout/tensor_layout.h"
#include "common/run/run_spec.h"
#include "worker/algorithm/local_model.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// The local model of any plan, in the host's memory and on the calling thread. On the CPU it uses
/// the plan's own arenas; on other devices it uses the arenas through which weights and gradients
/// are copied, so a step of a GPU costs two copies between it and the host.
///
/// Allocates memory for the anchor, for each state array of the optimizer, and for the landing
/// where weights land apart, each as large as the model.
///
/// Not thread-safe: one owner, the plan's. No step of the plan may run during a call.
class HostModel final : public LocalModel {
 public:
  /// `plan` computes a net of this layout, and must outlive the model.
  HostModel(const OptimizerSpec& optimizer, const TensorLayout& layout, bool lands_apart,
            Plan& plan);

  /// The memory into which the servers' weights are written, where they land apart; else empty.
  std::span<float> landing() { return landing_; }

  /// The algorithm's anchor.
  std::span<float> anchor() { return anchor_; }

  /// Resets the optimizer's state to that before the first step.
  void ForgetState();

  void Step(double learning_rate) override;
  void CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b, Arena y) override;
  size_t parameters() const override { return anchor_.size(); }

 private:
  void UpdatePiece(ParameterRange piece, const StepSize& step);
  std::span<float> ValuesOf(Arena arena);

  // Constant after construction.
  const TensorRules rules_;
  const RuleRow& row_;
  Plan& plan_;

  /// The parts that are updated one at a time: whole tensors, or pieces that fit the cache. Frozen
  /// tensors are in none.
  std::vector<ParameterRange> pieces_;

  std::vector<float> anchor_;
  std::vector<float> landing_;
  std::array<std::vector<float>, kStateArraysMax> states_;
  RuleScalars scalars_;

  // The results of one piece before they are written back: a rule's inputs and outputs must be
  // different arrays.
  std::vector<float> weights_out_;
  std::array<std::vector<float>, kStateArraysMax> states_out_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_
