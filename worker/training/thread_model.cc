#include "worker/training/thread_model.h"

#include "common/base/check.h"

namespace slipstream {

ThreadModel::ThreadModel(const OptimizerSpec& optimizer, const TensorLayout& layout,
                         SharedModel& shared, std::span<float> anchor, std::span<float> gradient)
    : rule_(optimizer, layout), shared_(shared), anchor_(anchor), gradient_(gradient) {
  PS_CHECK(RowOf(optimizer.kind).state_arrays == 0);
  PS_CHECK(shared.weights_host().size() == anchor.size() && gradient.size() == anchor.size());
}

void ThreadModel::Step(double learning_rate) {
  const StepSize step = {.rate = static_cast<float>(learning_rate)};
  const std::span<float> weights = shared_.weights_host();
  rule_.BeginStep();
  for (const ParameterRange& piece : rule_.pieces()) {
    shared_.ForEachBlock(piece, [&](ParameterRange part) {
      rule_.Update(part, weights.subspan(part.begin, part.size()),
                   gradient_.subspan(part.begin, part.size()), step);
    });
  }
}

void ThreadModel::CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b,
                                Arena y) {
  shared_.ForEachBlock(range, [&](ParameterRange part) {
    const auto within = [&](Arena arena) {
      return ValuesOf(arena).subspan(part.begin, part.size());
    };
    CombineValues(within(out), a, within(x), b, within(y));
  });
}

std::span<float> ThreadModel::ValuesOf(Arena arena) {
  switch (arena) {
    case Arena::kWeights:
      return shared_.weights_host();
    case Arena::kGradient:
      return gradient_;
    case Arena::kAnchor:
      return anchor_;
    case Arena::kLanding:
      break;
  }
  PS_CHECK(false);
  return {};
}

}  // namespace slipstream
