#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_LRN_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_LRN_H_

#include <cstdint>

#include "worker/compute/layer_shapes.h"

namespace slipstream::plain {

/// Local response normalisation (common/model/model_spec.h). Images are [count, channels, height,
/// width], row-major.
///
/// A window's sum is the sum of its rows' sums, each from its first value to its last.

void LrnForward(const LrnShape& shape, uint32_t count, const float* input, float* output);

/// Computes the gradient of each input from all outputs that it is part of.
void LrnInputGradient(const LrnShape& shape, uint32_t count, const float* input,
                      const float* output_gradient, float* input_gradient);

}  // namespace slipstream::plain

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_LRN_H_
