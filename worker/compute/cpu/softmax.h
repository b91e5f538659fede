#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_SOFTMAX_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_SOFTMAX_H_

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

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_SOFTMAX_H_
