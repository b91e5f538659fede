#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_VECTORS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_VECTORS_H_

#include <span>

#include "worker/compute/activation.h"

namespace slipstream {

/// The computations of a dense layer other than its matrix products. They work on rows of as many
/// values as the layer has units: [count, units], row-major.

/// Computes rows = activation(rows + bias), for each row.
void ActivateRows(std::span<float> rows, std::span<const float> bias, Activation activation);

/// Multiplies `gradients` by the derivative of the activation that gave `outputs`.
void UndoActivation(std::span<const float> outputs, std::span<float> gradients,
                    Activation activation);

/// Computes the gradient of the bias: the sum of the rows.
void SumRows(std::span<const float> rows, std::span<float> sum);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_VECTORS_H_
