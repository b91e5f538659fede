#include "worker/training/host_model.h"

#include <algorithm>
#include <cstdint>

#include "common/base/check.h"
#include "common/kernels/fold.h"
#include "common/kernels/streamed_stores.h"

namespace slipstream {
namespace {

/// The number of values that are updated at a time. For a rule with two states, all that it reads
/// and writes for them fits the second-level cache.
constexpr size_t kPieceValues = 8192;

std::vector<ParameterRange> PiecesOf(const TensorRules& rules) {
  std::vector<ParameterRange> pieces;
  for (const TensorRules::Span& span : rules.spans()) {
    if (span.is_frozen()) continue;
    for (size_t begin = span.range.begin; begin < span.range.end; begin += kPieceValues) {
      pieces.push_back({begin, std::min(begin + kPieceValues, span.range.end)});
    }
  }
  return pieces;
}

std::vector<ParameterRange> MovingTensors(const TensorRules& rules, const TensorLayout& layout) {
  std::vector<ParameterRange> tensors = layout.TensorsWithin({0, layout.parameters()});
  std::erase_if(tensors, [&rules](const ParameterRange& tensor) {
    return rules.SpanAt(tensor.begin).is_frozen();
  });
  return tensors;
}

}  // namespace

HostModel::HostModel(const OptimizerSpec& optimizer, const TensorLayout& layout, bool lands_apart,
                     Plan& plan)
    : rules_(optimizer, layout, {0, layout.parameters()}),
      row_(RowOf(optimizer.kind)),
      plan_(plan),
      pieces_(row_.measures_tensors ? MovingTensors(rules_, layout) : PiecesOf(rules_)),
      anchor_(layout.parameters()),
      landing_(lands_apart ? layout.parameters() : 0),
      scalars_(rules_.InitialScalars()) {
  PS_CHECK(plan.weights_host().size() == anchor_.size());
  size_t largest = 0;
  for (const ParameterRange& piece : pieces_) largest = std::max(largest, piece.size());
  weights_out_.resize(largest);
  for (uint32_t i = 0; i < row_.state_arrays; ++i) {
    states_[i].resize(anchor_.size());  // A rule's state starts at 0.
    states_out_[i].resize(largest);
  }
}

void HostModel::ForgetState() {
  for (std::vector<float>& state : states_) std::ranges::fill(state, 0.0f);
  scalars_ = rules_.InitialScalars();
}

void HostModel::Step(double learning_rate) {
  scalars_ = rules_.Next(scalars_);
  const StepSize step = {.rate = static_cast<float>(learning_rate)};
  for (const ParameterRange& piece : pieces_) UpdatePiece(piece, step);
  plan_.WeightsArrived({0, anchor_.size()});
}

void HostModel::UpdatePiece(ParameterRange piece, const StepSize& step) {
  const std::span<float> weights = plan_.weights_host().subspan(piece.begin, piece.size());
  const std::span<float> weights_out = std::span(weights_out_).first(piece.size());
  UpdateArrays arrays = {.weights_in = weights, .weights_out = weights_out};
  for (uint32_t i = 0; i < row_.state_arrays; ++i) {
    arrays.states[i] = {std::span(states_[i]).subspan(piece.begin, piece.size()),
                        std::span(states_out_[i]).first(piece.size())};
  }
  const CombinedGradient gradient = {.sum =
                                         plan_.gradients_host().subspan(piece.begin, piece.size())};
  rules_.Update(piece.begin, arrays, gradient, step, scalars_, Stores::kCached);
  if (row_.measures_tensors) rules_.FinishTensor(piece.begin, weights, weights_out, step);
  std::ranges::copy(weights_out, weights.begin());
  for (uint32_t i = 0; i < row_.state_arrays; ++i) {
    std::ranges::copy(arrays.states[i].out,
                      states_[i].begin() + static_cast<ptrdiff_t>(piece.begin));
  }
}

void HostModel::CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b, Arena y) {
  const std::span<float> to = ValuesOf(out).subspan(range.begin, range.size());
  const std::span<const float> of_x = ValuesOf(x).subspan(range.begin, range.size());
  const std::span<const float> of_y = ValuesOf(y).subspan(range.begin, range.size());
  for (size_t i = 0; i < to.size(); ++i) to[i] = a * of_x[i] + b * of_y[i];
  if (out == Arena::kWeights) plan_.WeightsArrived(range);
}

std::span<float> HostModel::ValuesOf(Arena arena) {
  switch (arena) {
    case Arena::kWeights:
      return plan_.weights_host();
    case Arena::kGradient:
      return plan_.gradients_host();
    case Arena::kAnchor:
      return anchor_;
    case Arena::kLanding:
      return landing_;
  }
  return {};
}

}  // namespace slipstream
