#ifndef SLIPSTREAM_WORKER_MODEL_INITIAL_VALUES_H_
#define SLIPSTREAM_WORKER_MODEL_INITIAL_VALUES_H_

#include <cstdint>
#include <span>

#include "common/layout/tensor_layout.h"

namespace slipstream {

/// Fills `weights` with the initial values of a net: each `*.weight` and `*.bias` tensor is uniform
/// in ±1/√fan_in, where fan_in is the product of all dimensions of the weight except the first. A
/// bias uses the fan_in of its weight. This is PyTorch's default (Kaiming uniform with a = √5,
/// after He et al., ICCV'15). Equal seeds give equal values on every machine.
/// REQUIRES: weights.size() == layout.parameters().
void FillInitialValues(const TensorLayout& layout, uint64_t seed, std::span<float> weights);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_MODEL_INITIAL_VALUES_H_
