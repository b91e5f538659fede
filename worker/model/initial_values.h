#ifndef SLIPSTREAM_WORKER_MODEL_INITIAL_VALUES_H_
#define SLIPSTREAM_WORKER_MODEL_INITIAL_VALUES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "common/layout/tensor_layout.h"

namespace slipstream {

/// Standard deviations by the names of tensors (NetShapes::normal_weights).
using DeviationsByName = std::map<std::string, float>;

/// Fills `weights` with the initial values of a net: each `*.weight` and `*.bias` tensor is uniform
/// in ±1/√fan_in, where fan_in is the product of all dimensions of the weight except the first. A
/// bias uses the fan_in of its weight. This is PyTorch's default (Kaiming uniform with a = √5,
/// after He et al., ICCV'15). A weight whose name is in `normal_weights` is normal around 0 with
/// that deviation instead, and its bias 0. Equal seeds give equal values on every machine.
/// REQUIRES: weights.size() == layout.parameters().
void FillInitialValues(const TensorLayout& layout, uint64_t seed, std::span<float> weights,
                       const DeviationsByName& normal_weights = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_MODEL_INITIAL_VALUES_H_
