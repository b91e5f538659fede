#include "worker/python/callers_model.h"

#include <algorithm>

namespace slipstream {

void CallersModel::CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b,
                                 Arena y) {
  const std::span<float> to = ValuesOf(out);
  const auto combine = [&](ParameterRange part, std::span<const float> of_x,
                           std::span<const float> of_y) {
    CombineValues(to.subspan(part.begin, part.size()), a, of_x, b, of_y);
  };
  const auto within = [&](Arena arena, ParameterRange part) -> std::span<const float> {
    return ValuesOf(arena).subspan(part.begin, part.size());
  };
  const bool reads_gradient = x == Arena::kGradient || y == Arena::kGradient;
  if (gradient_.empty() || !reads_gradient) {
    // A copy to the gradient of what lies in the same memory.
    const bool changes_nothing = a == 1 && b == 0 && ValuesOf(x).data() == to.data();
    if (!changes_nothing) combine(range, within(x, range), within(y, range));
  } else {
    const std::vector<Tensor>& tensors = layout_.tensors();
    for (size_t i = layout_.TensorAt(range.begin);
         i < tensors.size() && tensors[i].offset < range.end; ++i) {
      const size_t end = tensors[i].offset + tensors[i].size();
      const ParameterRange part = {std::max(tensors[i].offset, range.begin),
                                   std::min(end, range.end)};
      const auto of = [&](Arena arena) {
        return arena == Arena::kGradient ? GradientWithin(i, part) : within(arena, part);
      };
      combine(part, of(x), of(y));
    }
  }
  if (out == Arena::kGradient) gradient_.clear();
}

std::span<const float> CallersModel::GradientWithin(size_t tensor, ParameterRange part) {
  if (gradient_[tensor] != nullptr) {
    return {gradient_[tensor] + (part.begin - layout_.tensors()[tensor].offset), part.size()};
  }
  zeros_.resize(std::max(zeros_.size(), part.size()));
  return std::span(zeros_).first(part.size());
}

std::span<float> CallersModel::ValuesOf(Arena arena) {
  switch (arena) {
    case Arena::kWeights:
      return weights_;
    case Arena::kLanding:
      return landing_;
    case Arena::kGradient:
    case Arena::kAnchor:
      break;
  }
  return values_;
}

}  // namespace slipstream
