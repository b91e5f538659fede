#ifndef SLIPSTREAM_WORKER_COMPUTE_PLAN_H_
#define SLIPSTREAM_WORKER_COMPUTE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/precision.h"
#include "common/model/model_spec.h"
#include "worker/model/model_listeners.h"

namespace slipstream {

/// A set of examples and their labels or targets, borrowed. Batches are drawn from it.
struct ExampleTable {
  /// The number of values of all examples, laid out as in Batch, and a function that writes those
  /// from position `begin` on: they need not lie in memory as fp32.
  size_t values = 0;
  std::function<void(size_t begin, std::span<float> to)> read;

  /// The same as in Batch, but for all examples. Where they lie tells one table from another.
  std::span<const uint32_t> labels;
  std::span<const float> targets;
};

/// Examples and their labels or targets, borrowed until the step, or the evaluation, is over. They
/// are given by value, or by their positions in the table that the plan keeps.
struct Batch {
  /// [count, channels, height, width], row-major.
  std::span<const float> examples;

  /// For cross-entropy: one class per example, below the net's outputs. Else empty.
  std::span<const uint32_t> labels;

  /// The position of this mini-batch in the run-long sequence. It keys dropout together with the
  /// seed and the layer, so that equal batches drop equal units on every worker.
  uint64_t index = 0;

  /// For mse: [count, outputs], row-major. Else empty.
  std::span<const float> targets;

  /// For a plan that keeps examples: the positions of the batch's examples, in order. The values
  /// are then empty.
  std::span<const uint32_t> rows;

  /// The number of examples, if each has `inputs` values.
  size_t CountOf(size_t inputs) const {
    return rows.empty() ? examples.size() / inputs : rows.size();
  }
};

/// The memory to fill with a batch's values, with labels or targets as the net's loss needs them.
/// The layout is as in Batch.
struct BatchSpace {
  std::span<float> examples;
  std::span<uint32_t> labels;
  std::span<float> targets;
};

struct StepResult {
  /// The mean over the batch of the loss that ModelSpec::Loss names.
  float loss = 0;

  /// The number of examples whose largest output was their class; absent if there are no classes
  /// (mse).
  std::optional<uint32_t> correct;

  /// For a training step: when the forward pass ended, and how long it had waited for weights.
  absl::Time forward_end = {};
  absl::Duration waited = {};
};

/// The weights that steps compute from and the gradient that they give, on the host's side: flat
/// arrays in the order of the net's TensorLayout.
///
/// Not thread-safe: one owner, except that the functions of WeightsListener may be called from any
/// thread at any time.
class ModelArenas : public WeightsListener {
 public:
  /// The memory into which weights are written before WeightsArrived names them. A range that was
  /// named must not be written while a step or an evaluation that uses it runs.
  virtual std::span<float> weights_host() = 0;

  /// Announces that all weights are about to be replaced. REQUIRES: no step is under way, and no
  /// weights that were expected before are still to arrive.
  virtual void ExpectWeights() = 0;

  /// The gradient of the mean loss of the last step. The caller may write here until the next step
  /// begins.
  virtual std::span<float> gradients_host() = 0;
};

/// One net, prepared for one device, batch size and precision, with its weights, gradients,
/// activations and workspace.
///
/// The interface never assumes that the device's arenas are addressable by the host: values enter
/// through weights_host() and leave through gradients_host(), which on a CPU are the arenas
/// themselves and on other devices pinned staging buffers. Only flat arenas in the order of the
/// net's TensorLayout cross the boundary.
///
/// Weights may arrive while a step runs. After ExpectWeights, a step waits, layer by layer, until
/// WeightsArrived has named the weights that the layer reads; without it, all weights count as
/// present. A step that will not get its weights, or read some that were replaced by another
/// version's, fails with CANCELLED, reports no gradient, and may be started again.
///
/// Not thread-safe: one owner, with the exceptions of ModelArenas; NewBatch and OfferBatch may be
/// called from one other thread, too. Plans share no state that a caller could see, so two may run
/// at once.
class Plan : public ModelArenas {
 public:
  /// Copies the examples to the device, so that batches need only name their positions
  /// (Batch::rows). Returns false if that would gain nothing or there is no room; batches then come
  /// by value, and no table is kept, not even an earlier one. All plans of a device share the
  /// copies of a table. REQUIRES: no step is under way, and no batch is being gathered; the table
  /// stays unchanged while any plan keeps it.
  virtual bool KeepExamples(const ExampleTable& /*table*/) { return false; }

  /// Returns space for a coming batch of at most `batch_size_max` examples; the device has copied
  /// the batch from there by the time its step begins. Returns nothing if that would gain nothing.
  /// Two spaces exist at once: that of the step under way, and the next. REQUIRES: steps of older
  /// spaces are finished.
  virtual std::optional<BatchSpace> NewBatch(uint32_t /*count*/) { return std::nullopt; }

  /// Announces that the newest space is filled. A step whose batch is exactly these spans uses the
  /// device's copy.
  virtual void OfferBatch() {}

  /// Starts the forward and backward passes on at most `batch_size_max` examples. The batch must
  /// stay unchanged until FinishStep. May do the work, and wait for weights, before it returns.
  /// `listener` may be null.
  virtual absl::Status StartStep(const Batch& batch, GradientListener* listener) = 0;

  /// Waits for the step that was started last, and returns its result.
  virtual absl::StatusOr<StepResult> FinishStep() = 0;

  /// Runs only the forward pass, without dropout and without using the batch's index; for test
  /// sets. A device may refuse with FAILED_PRECONDITION while a step is under way. REQUIRES: all
  /// weights are present.
  virtual absl::StatusOr<StepResult> Evaluate(const Batch& batch) = 0;
};

struct PlanOptions {
  /// The number of examples of the largest batch; memory grows with it. ≥ 1.
  uint32_t batch_size_max = 32;

  /// The run's seed; it keys dropout.
  uint64_t seed = 1;

  /// The precision of the plan. A device may compute layers in fp32 if bf16 would gain nothing.
  Precision precision = Precision::kFp32;

  /// Whether equal inputs must give equal bits. If not, a device may add in any order, where that
  /// is faster.
  bool deterministic = true;

  /// The caller's memory for gradients_host(): as many values as the net has parameters, on pages
  /// that nothing else uses, valid as long as the plan. Empty: the plan chooses. A device that
  /// cannot use this memory still allocates its own.
  std::span<float> gradients;

  /// False for a plan that only evaluates: it has no gradient arena, gradients_host() is empty, and
  /// StartStep fails.
  bool trains = true;
};

/// Makes plans for one device.
class Device {
 public:
  virtual ~Device() = default;

  /// Prepares a plan. Fails with INVALID_ARGUMENT if the net's shapes do not fit together or the
  /// device lacks the precision, and with RESOURCE_EXHAUSTED, naming the bytes, if memory is short.
  virtual absl::StatusOr<std::unique_ptr<Plan>> Prepare(const ModelSpec& model,
                                                        const PlanOptions& options) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_PLAN_H_
