#ifndef SLIPSTREAM_WORKER_COMPUTE_PLAN_H_
#define SLIPSTREAM_WORKER_COMPUTE_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "common/model/model_spec.h"

namespace slipstream {

/// Examples and what they are held against, borrowed from the data set for the length of one call.
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
};

struct StepResult {
  /// Mean over the batch of what ModelSpec::Loss names.
  float loss = 0;

  /// Examples whose largest output was their class; absent where there are no classes (mse).
  std::optional<uint32_t> correct;
};

/// Is told of gradient ranges as backward finishes them.
class GradientListener {
 public:
  virtual ~GradientListener() = default;

  /// `range` of gradients_host() is final and stays so until the next StartStep. Ranges are
  /// disjoint, come in order from the end of the arena to its beginning, and cover it by the time
  /// FinishStep returns. May be called from the plan's own thread: must not block.
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
/// Not thread-safe: one owner. Plans share nothing, so two may run at once.
class Plan {
 public:
  virtual ~Plan() = default;

  /// Where weights are written before WeightsArrived names them. Not to be written while a step or
  /// an evaluation that uses them runs.
  virtual std::span<float> weights_host() = 0;

  /// The range of weights_host() holds new values that later steps shall use; returns without
  /// waiting for the device.
  virtual void WeightsArrived(ParameterRange range) = 0;

  /// The gradient of the mean loss of the last step, layout order.
  virtual std::span<const float> gradients_host() const = 0;

  /// Starts forward and backward on at most `batch_size_max` examples; the batch must stay until
  /// FinishStep. May do the work before it returns. `listener` may be null.
  virtual absl::Status StartStep(const Batch& batch, GradientListener* listener) = 0;

  /// Waits for the step started last.
  virtual absl::StatusOr<StepResult> FinishStep() = 0;

  /// Forward only, dropout off; the batch's index is not used. For test sets.
  virtual absl::StatusOr<StepResult> Evaluate(const Batch& batch) = 0;
};

struct PlanOptions {
  /// Examples the largest batch may hold; memory grows with it. ≥ 1.
  uint32_t batch_size_max = 32;

  /// Of the run; keys dropout.
  uint64_t seed = 1;

  /// Compute threads. Results are equal for any number.
  uint32_t threads = 1;

  /// False for a plan that only evaluates: no gradient arena, gradients_host() is empty, StartStep
  /// fails.
  bool trains = true;
};

/// Makes plans for one device.
class Device {
 public:
  virtual ~Device() = default;

  /// Fails with INVALID_ARGUMENT if the net's shapes do not fit together, with RESOURCE_EXHAUSTED
  /// naming the bytes if memory is short.
  virtual absl::StatusOr<std::unique_ptr<Plan>> Prepare(const ModelSpec& model,
                                                        const PlanOptions& options) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_PLAN_H_
