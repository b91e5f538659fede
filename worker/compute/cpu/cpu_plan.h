#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_PLAN_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_PLAN_H_

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "common/memory/aligned_buffer.h"
#include "common/model/net_shapes.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cpu/node_choice.h"
#include "worker/compute/plan.h"
#include "worker/compute/weights_gate.h"

namespace slipstream {

/// A net's nodes, with the arenas and activations that they work on.
///
/// StartStep does the whole step and waits for the weights of each node before it computes the
/// node; FinishStep returns the result.
class CpuPlan final : public Plan {
 public:
  /// May throw std::bad_alloc or dnnl::error.
  CpuPlan(const NetSizes& net, std::vector<ChosenNode> nodes, const PlanOptions& options);

  /// Returns the bytes of a plan's arenas and activations, without the buffers of fast nodes.
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
  // Runs a training step and returns its result, or why there is none.
  absl::StatusOr<StepResult> Step(const Batch& batch, uint32_t count, GradientListener* listener);

  // These may throw dnnl::error. Forward returns the outputs; nullptr if it will not get its
  // weights, which happens only in training.
  const float* Forward(const Pass& pass, const float* examples);
  StepResult Loss(const Batch& batch, const Pass& pass, const float* outputs);
  void Backward(const Pass& pass, const float* examples);

  // Constant after construction.
  const NetSizes net_;
  const PlanOptions options_;

  std::vector<ChosenNode> nodes_;
  AlignedBuffer<float> weights_;
  AlignedBuffer<float> own_gradients_;         // Empty if the caller provides them.
  std::span<float> gradients_;                 // Empty in a plan that only evaluates.
  std::vector<AlignedBuffer<float>> outputs_;  // The outputs of each node.
  // For a node and the one before it.
  std::array<AlignedBuffer<float>, 2> output_gradients_;

  WeightsGate gate_;
  std::optional<StepResult> started_;  // The result that FinishStep has not fetched yet.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_PLAN_H_
