#ifndef SLIPSTREAM_WORKER_COMPUTE_PLAN_H_
#define SLIPSTREAM_WORKER_COMPUTE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/precision.h"
#include "common/layout/tensor_layout.h"
#include "common/model/model_spec.h"

namespace slipstream {

/// A set of examples and what they are held against, borrowed: what batches are drawn from.
struct ExampleTable {
  /// As in Batch, of all examples.
  std::span<const float> examples;
  std::span<const uint32_t> labels;
  std::span<const float> targets;
};

/// Examples and what they are held against, borrowed until the step, or the evaluation, is over:
/// by their values, or by where they lie in what the plan keeps.
struct Batch {
  /// [count, channels, height, width], row-major.
  std::span<const float> examples;

  /// Of cross-entropy: one class per example, below the net's outputs. Else empty.
  std::span<const uint32_t> labels;

  /// Position of this mini-batch in the run-long sequence; keys dropout together with the seed and
  /// the layer, so that equal batches drop equal units whoever computes them.
  uint64_t index = 0;

  /// Of mse: [count, outputs], row-major. Else empty.
  std::span<const float> targets;

  /// Of a plan that keeps examples: which of them, in their order. Then there are no values.
  std::span<const uint32_t> rows;

  /// Examples of so many values each.
  size_t CountOf(size_t inputs) const {
    return rows.empty() ? examples.size() / inputs : rows.size();
  }
};

/// Where a batch's values are put; labels or targets, as the net's loss wants. As in Batch.
struct BatchSpace {
  std::span<float> examples;
  std::span<uint32_t> labels;
  std::span<float> targets;
};

struct StepResult {
  /// Mean over the batch of what ModelSpec::Loss names.
  float loss = 0;

  /// Examples whose largest output was their class; absent where there are no classes (mse).
  std::optional<uint32_t> correct;

  /// Of a training step: when forward was over, and how long it had waited for weights.
  absl::Time forward_end = {};
  absl::Duration waited = {};
};

/// Is told of gradient ranges as backward finishes them.
class GradientListener {
 public:
  virtual ~GradientListener() = default;

  /// `range` of gradients_host() is final and stays so until the backward pass of the next step,
  /// which begins once all weights expected have arrived. Ranges are disjoint, come in order from
  /// the end of the arena to its beginning, and cover it by the time FinishStep returns. May be
  /// called from the plan's own thread: must not block.
  virtual void OnGradientReady(ParameterRange range) = 0;
};

/// One net, prepared for one device, batch size and type, with its weights, gradients, activations
/// and workspace.
///
/// The interface never assumes that the device's arenas are addressable by the host: values enter
/// through weights_host() and leave through gradients_host(), which on a CPU are the arenas
/// themselves and on other devices pinned staging buffers. Only flat arenas in the order of the
/// net's TensorLayout cross the boundary.
///
/// Weights may arrive while a step runs. After ExpectWeights, a step waits, layer by layer, until
/// WeightsArrived has named what the layer reads; without it, all weights are taken to be there. A
/// step that will not get its weights, or read some that were replaced by another version's, fails
/// with CANCELLED, reports no gradient, and may be started again.
///
/// Not thread-safe: one owner, but for WeightsArrived, RevokeWeights and AbandonWeights, which may
/// be called from any thread at any time, and NewBatch and OfferBatch, which may be one other
/// thread's. Plans share nothing that a caller could see, so two may run at once.
class Plan {
 public:
  virtual ~Plan() = default;

  /// Where weights are written before WeightsArrived names them. A range that was named is not to
  /// be written while a step or an evaluation that uses it runs.
  virtual std::span<float> weights_host() = 0;

  /// The range of weights_host() holds new values that steps shall use; returns without waiting for
  /// the device.
  virtual void WeightsArrived(ParameterRange range) = 0;

  /// All weights are about to be replaced. REQUIRES: no step is under way, nothing that was
  /// expected before is still to arrive.
  virtual void ExpectWeights() = 0;

  /// `range`, of which parts may have arrived, will be written anew, by another version. Returns
  /// once no step reads it; the step under way, or else the next one, fails.
  virtual void RevokeWeights(ParameterRange range) = 0;

  /// What has not arrived will not: steps that wait for it fail, now and later.
  virtual void AbandonWeights() = 0;

  /// The gradient of the mean loss of the last step, layout order. The caller may write here until
  /// the next step begins.
  virtual std::span<float> gradients_host() = 0;

  /// Copies the examples to where steps need only be told which of them they are of, Batch::rows;
  /// false where that would gain nothing or there is no room, and batches come by value: then none
  /// are kept, whatever was before. Copies of one table are shared by all plans of a device.
  /// REQUIRES: no step is under way, and no batch is being gathered; the table stays as it is while
  /// there are plans that keep it.
  virtual bool KeepExamples(const ExampleTable& /*table*/) { return false; }

  /// Space for a coming batch of at most `batch_size_max` examples, from which the device has it by
  /// the time its step begins; nothing where that would gain nothing. Two of them stay at once:
  /// that of the step under way, and the next. REQUIRES: steps of older ones are finished.
  virtual std::optional<BatchSpace> NewBatch(uint32_t /*count*/) { return std::nullopt; }

  /// The newest space is filled. A step whose batch is these very spans takes it from the device.
  virtual void OfferBatch() {}

  /// Starts forward and backward on at most `batch_size_max` examples; the batch must stay until
  /// FinishStep. May do the work, and wait for weights, before it returns. `listener` may be null.
  virtual absl::Status StartStep(const Batch& batch, GradientListener* listener) = 0;

  /// Waits for the step started last.
  virtual absl::StatusOr<StepResult> FinishStep() = 0;

  /// Forward only, dropout off; the batch's index is not used. For test sets. A device may refuse
  /// it with FAILED_PRECONDITION while a step is under way. REQUIRES: all weights are there.
  virtual absl::StatusOr<StepResult> Evaluate(const Batch& batch) = 0;
};

struct PlanOptions {
  /// Examples the largest batch may hold; memory grows with it. ≥ 1.
  uint32_t batch_size_max = 32;

  /// Of the run; keys dropout.
  uint64_t seed = 1;

  /// A device may compute layers in fp32 where bf16 would gain nothing.
  Precision precision = Precision::kFp32;

  /// Equal inputs give equal bits. Else a device may add in any order, where that is faster.
  bool deterministic = true;

  /// Where gradients_host() shall lie: as many values as the net has parameters, the caller's, on
  /// pages that nothing else uses and that outlive the plan. Empty: where the plan likes. A device
  /// that cannot use them takes its own all the same.
  std::span<float> gradients;

  /// False for a plan that only evaluates: no gradient arena, gradients_host() is empty, StartStep
  /// fails.
  bool trains = true;
};

/// Makes plans for one device.
class Device {
 public:
  virtual ~Device() = default;

  /// Fails with INVALID_ARGUMENT if the net's shapes do not fit together or the device lacks the
  /// precision, with RESOURCE_EXHAUSTED naming the bytes if memory is short.
  virtual absl::StatusOr<std::unique_ptr<Plan>> Prepare(const ModelSpec& model,
                                                        const PlanOptions& options) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_PLAN_H_
