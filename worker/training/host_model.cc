#include "worker/training/host_model.h"

#include "common/base/check.h"

namespace slipstream {

HostModel::HostModel(const OptimizerSpec& optimizer, const TensorLayout& layout, bool lands_apart,
                     ModelArenas& arenas)
    : rule_(optimizer, layout),
      arenas_(arenas),
      anchor_(layout.parameters()),
      landing_(lands_apart ? layout.parameters() : 0) {
  PS_CHECK(arenas.weights_host().size() == anchor_.size());
}

void HostModel::Step(double learning_rate) {
  const StepSize step = {.rate = static_cast<float>(learning_rate)};
  const std::span<float> weights = arenas_.weights_host();
  const std::span<const float> gradient = arenas_.gradients_host();
  rule_.BeginStep();
  for (const ParameterRange& piece : rule_.pieces()) {
    rule_.Update(piece, weights.subspan(piece.begin, piece.size()),
                 gradient.subspan(piece.begin, piece.size()), step);
  }
  arenas_.WeightsArrived({0, anchor_.size()});
}

void HostModel::CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b, Arena y) {
  const auto within = [&](Arena arena) {
    return ValuesOf(arena).subspan(range.begin, range.size());
  };
  CombineValues(within(out), a, within(x), b, within(y));
  if (out == Arena::kWeights) arenas_.WeightsArrived(range);
}

std::span<float> HostModel::ValuesOf(Arena arena) {
  switch (arena) {
    case Arena::kWeights:
      return arenas_.weights_host();
    case Arena::kGradient:
      return arenas_.gradients_host();
    case Arena::kAnchor:
      return anchor_;
    case Arena::kLanding:
      return landing_;
  }
  return {};
}

}  // namespace slipstream
