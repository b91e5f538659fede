#ifndef SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_
#define SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_

#include <cstddef>
#include <span>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"
#include "worker/algorithm/local_model.h"
#include "worker/compute/plan.h"
#include "worker/training/inner_rule.h"

namespace slipstream {

/// The local model of any plan, in the host's memory and on the calling thread. On the CPU it uses
/// the plan's own arenas; on other devices it uses the arenas through which weights and gradients
/// are copied, so a step of a GPU costs two copies between it and the host.
///
/// Allocates memory for the anchor, for the state of the optimizer's rule, and for the landing
/// where weights land apart.
///
/// Not thread-safe: one owner, the plan's. No step of the plan may run during a call.
class HostModel final : public LocalModel {
 public:
  /// `arenas` are those of a plan for a net of this layout, and must outlive the model.
  HostModel(const OptimizerSpec& optimizer, const TensorLayout& layout, bool lands_apart,
            ModelArenas& arenas);

  /// The memory into which the servers' weights are written, where they land apart; else empty.
  std::span<float> landing() { return landing_; }

  /// The algorithm's anchor.
  std::span<float> anchor() { return anchor_; }

  /// Resets the optimizer's state to that before the first step.
  void ForgetState() { rule_.ForgetState(); }

  /// The rule of the steps, for its state.
  InnerRule& rule() { return rule_; }

  /// The weights; WeightsArrived follows if they are changed.
  std::span<float> weights() { return arenas_.weights_host(); }
  void WeightsArrived() { arenas_.WeightsArrived({0, anchor_.size()}); }

  void Step(double learning_rate) override;
  void CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b, Arena y) override;
  size_t parameters() const override { return anchor_.size(); }

 private:
  std::span<float> ValuesOf(Arena arena);

  InnerRule rule_;
  ModelArenas& arenas_;
  std::vector<float> anchor_;
  std::vector<float> landing_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_HOST_MODEL_H_
