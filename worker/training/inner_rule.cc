#include "worker/training/inner_rule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

InnerRule::InnerRule(const OptimizerSpec& optimizer, const TensorLayout& layout)
    : rules_(optimizer, layout, {0, layout.parameters()}),
      row_(RowOf(optimizer.kind)),
      pieces_(row_.measures_tensors ? MovingTensors(rules_, layout) : PiecesOf(rules_)),
      scalars_(rules_.InitialScalars()) {
  size_t largest = 0;
  for (const ParameterRange& piece : pieces_) largest = std::max(largest, piece.size());
  weights_out_.resize(largest);
  for (uint32_t i = 0; i < row_.state_arrays; ++i) {
    states_[i].resize(layout.parameters());  // A rule's state starts at 0.
    states_out_[i].resize(largest);
  }
}

void InnerRule::Update(ParameterRange piece, std::span<float> weights, std::span<const float> sum,
                       const StepSize& step, float inverse_divisor) {
  const std::span<float> weights_out = std::span(weights_out_).first(piece.size());
  UpdateArrays arrays = {.weights_in = weights, .weights_out = weights_out};
  for (uint32_t i = 0; i < row_.state_arrays; ++i) {
    arrays.states[i] = {std::span(states_[i]).subspan(piece.begin, piece.size()),
                        std::span(states_out_[i]).first(piece.size())};
  }
  rules_.Update(piece.begin, arrays, {.sum = sum, .inverse_divisor = inverse_divisor}, step,
                scalars_, Stores::kCached);
  if (row_.measures_tensors) rules_.FinishTensor(piece.begin, weights, weights_out, step);
  std::ranges::copy(weights_out, weights.begin());
  for (uint32_t i = 0; i < row_.state_arrays; ++i) {
    std::ranges::copy(arrays.states[i].out,
                      states_[i].begin() + static_cast<ptrdiff_t>(piece.begin));
  }
}

std::vector<std::span<float>> InnerRule::states() {
  std::vector<std::span<float>> states;
  for (uint32_t i = 0; i < row_.state_arrays; ++i) states.emplace_back(states_[i]);
  return states;
}

void InnerRule::ForgetState() {
  for (std::vector<float>& state : states_) std::ranges::fill(state, 0.0f);
  scalars_ = rules_.InitialScalars();
}

}  // namespace slipstream
