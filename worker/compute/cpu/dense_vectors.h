#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_VECTORS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_VECTORS_H_

#include <span>

#include "worker/compute/activation.h"

namespace slipstream {

/// What a dense layer computes beside its products of matrices, on rows of as many values as it has
/// units: [count, units], row-major.

/// rows = activation(rows + bias), for each row.
void ActivateRows(std::span<float> rows, std::span<const float> bias, Activation activation);

/// Multiplies `gradients` by the activation's derivative where it gave `outputs`.
void UndoActivation(std::span<const float> outputs, std::span<float> gradients,
                    Activation activation);

/// The gradient of the bias.
void SumRows(std::span<const float> rows, std::span<float> sum);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_VECTORS_H_
