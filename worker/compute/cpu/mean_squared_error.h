#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_MEAN_SQUARED_ERROR_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_MEAN_SQUARED_ERROR_H_

#include <span>

#include "worker/compute/plan.h"

namespace slipstream {

/// Returns the mean of (output − target)² over all values of a batch, summed in order in double
/// precision. Writes the gradient of the mean, 2 (output − target) / size, unless
/// `outputs_gradient` is empty. The result counts no correct examples.
/// REQUIRES: as many targets as outputs; outputs_gradient is empty or as large.
StepResult MeanSquaredError(std::span<const float> outputs, std::span<const float> targets,
                            std::span<float> outputs_gradient);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_MEAN_SQUARED_ERROR_H_
