#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_LOSSES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_LOSSES_H_

#include <cstdint>
#include <span>

#include "worker/compute/plan.h"

namespace slipstream {

/// Returns the mean cross-entropy of softmax(logits) against the labels, and the number of examples
/// whose largest logit (the first of equal ones) is the label's. Writes the gradient of the mean
/// unless `logits_gradient` is empty. Logits are [labels.size(), classes], row-major.
/// REQUIRES: each label < classes; logits_gradient is empty or as large as logits.
StepResult SoftmaxCrossEntropy(std::span<const float> logits, std::span<const uint32_t> labels,
                               uint32_t classes, std::span<float> logits_gradient);

/// Returns the mean of (output − target)² over all values of a batch, summed in order in double
/// precision. Writes the gradient of the mean, 2 (output − target) / size, unless
/// `outputs_gradient` is empty. The result counts no correct examples.
/// REQUIRES: as many targets as outputs; outputs_gradient is empty or as large.
StepResult MeanSquaredError(std::span<const float> outputs, std::span<const float> targets,
                            std::span<float> outputs_gradient);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_LOSSES_H_
