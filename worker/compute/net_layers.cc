#include "worker/compute/net_layers.h"

#include <optional>
#include <string>
#include <variant>

#include "common/base/check.h"

namespace slipstream {

Activation NetLayers::ActivationAt(size_t layer) const {
  if (layer >= size()) return Activation::kNone;
  if (std::holds_alternative<ReluLayer>(at(layer))) return Activation::kRelu;
  if (std::holds_alternative<TanhLayer>(at(layer))) return Activation::kTanh;
  return Activation::kNone;
}

DenseShape NetLayers::DenseAt(size_t layer) const {
  return {input(layer).channels, std::get<DenseLayer>(at(layer)).units};
}

Conv2dShape NetLayers::Conv2dAt(size_t layer) const {
  const auto& conv = std::get<Conv2dLayer>(at(layer));
  return {input(layer), output(layer), conv.kernel, conv.stride, conv.padding};
}

PoolShape NetLayers::PoolAt(size_t layer) const {
  const auto& pool = std::get<PoolLayer>(at(layer));
  return {pool.kind, input(layer), output(layer), pool.kernel, pool.stride};
}

LrnShape NetLayers::LrnAt(size_t layer) const {
  const auto& lrn = std::get<LrnLayer>(at(layer));
  return {input(layer), lrn.region, lrn.size, lrn.alpha, lrn.beta};
}

LayerParameters NetLayers::ParametersAt(size_t layer) const {
  const std::string prefix = std::to_string(layer);
  const Tensor* weight = shapes_.layout.Find(prefix + ".weight");
  const Tensor* bias = shapes_.layout.Find(prefix + ".bias");
  PS_CHECK(weight != nullptr && bias != nullptr);
  PS_CHECK(bias->offset == weight->offset + weight->size());
  return {weight->offset, bias->offset, bias->offset + bias->size()};
}

ParameterRange NetLayers::ParametersOf(size_t first, size_t end) const {
  std::optional<ParameterRange> all;
  for (size_t layer = first; layer < end; ++layer) {
    const bool has_parameters = std::holds_alternative<DenseLayer>(at(layer)) ||
                                std::holds_alternative<Conv2dLayer>(at(layer));
    if (!has_parameters) continue;
    const ParameterRange own = ParametersAt(layer).range();
    all = {all ? all->begin : own.begin, own.end};
  }
  return all.value_or(ParameterRange{});
}

}  // namespace slipstream
