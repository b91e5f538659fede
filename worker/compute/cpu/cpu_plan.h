#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_PLAN_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_PLAN_H_

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "common/model/net_shapes.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cpu/aligned_buffer.h"
#include "worker/compute/cpu/node_choice.h"
#include "worker/compute/plan.h"
#include "worker/compute/weights_gate.h"

namespace slipstream {

/// A net's nodes and the arenas and activations they work on.
///
/// StartStep does the whole step, waiting for the weights of each node before it computes it;
/// FinishStep hands out the result.
class CpuPlan final : public Plan {
 public:
  /// Throws std::bad_alloc or dnnl::error.
  CpuPlan(const NetSizes& net, std::vector<ChosenNode> nodes, const PlanOptions& options);

  /// What the arenas and the activations of a plan take, without what fast nodes add.
  static size_t BytesAtLeast(const NetShapes& shapes, const PlanOptions& options);

  std::span<float> weights_host() override { return weights_.span(); }
  void WeightsArrived(ParameterRange range) override { gate_.Arrived(range); }
  void ExpectWeights() override { gate_.Expect(); }
  void RevokeWeights(ParameterRange range) override { gate_.Revoke(range); }
  void AbandonWeights() override { gate_.Abandon(); }
  std::span<float> gradients_host() override { return gradients_; }
  absl::Status StartStep(const Batch& batch, GradientListener* listener) override;
  absl::StatusOr<StepResult> FinishStep() override;
  absl::StatusOr<StepResult> Evaluate(const Batch& batch) override;

 private:
  // A training step, or why there was none.
  absl::StatusOr<StepResult> Step(const Batch& batch, uint32_t count, GradientListener* listener);

  // These throw what oneDNN throws. Forward returns the outputs; nullptr if it will not get its
  // weights, which happens in training only.
  const float* Forward(const Pass& pass, const float* examples);
  StepResult Loss(const Batch& batch, const Pass& pass, const float* outputs);
  void Backward(const Pass& pass, const float* examples);

  // Constant after construction.
  const NetSizes net_;
  const PlanOptions options_;

  std::vector<ChosenNode> nodes_;
  AlignedBuffer<float> weights_;
  AlignedBuffer<float> own_gradients_;                    // Empty if they lie elsewhere.
  std::span<float> gradients_;                            // Empty in a plan that only evaluates.
  std::vector<AlignedBuffer<float>> outputs_;             // Of each node.
  std::array<AlignedBuffer<float>, 2> output_gradients_;  // Of one node and of the one before it.

  WeightsGate gate_;
  std::optional<StepResult> started_;  // The result that FinishStep has not fetched yet.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_PLAN_H_
