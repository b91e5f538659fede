#include "common/kernels/rules/tensor_rules.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/segments.h"
#include "common/settings/tensor_options.h"

namespace slipstream {
namespace {

std::shared_ptr<const UpdateRule> RuleWithDecay(OptimizerSpec optimizer, double decay) {
  optimizer.weight_decay = decay;
  optimizer.per_tensor.clear();
  return MakeUpdateRule(optimizer);
}

UpdateArrays Part(const UpdateArrays& arrays, size_t begin, size_t count) {
  UpdateArrays part = {.weights_in = arrays.weights_in.subspan(begin, count),
                       .weights_out = arrays.weights_out.subspan(begin, count)};
  for (size_t i = 0; i < part.states.size(); ++i) {
    if (arrays.states[i].in.empty()) continue;
    part.states[i] = {arrays.states[i].in.subspan(begin, count),
                      arrays.states[i].out.subspan(begin, count)};
  }
  return part;
}

/// Copies values. A rule at the rate 0 would not do: −0 − 0 · g may be 0, and rules take subnormal
/// numbers for 0.
void Keep(std::span<const float> in, std::span<float> out, Stores stores) {
  PS_CHECK(in.size() == out.size());
  if (in.data() == out.data()) return;
  if (stores == Stores::kCached) {
    std::ranges::copy(in, out.begin());
    return;
  }
  StreamValues(in.data(), out.data(), in.size());
  FinishStreaming();
}

StepSize Scaled(StepSize step, double factor) {
  step.rate = static_cast<float>(factor * step.rate);
  return step;
}

void UpdateSpan(const TensorRules::Span& span, const UpdateArrays& arrays,
                const CombinedGradient& gradient, const StepSize& step, const RuleScalars& scalars,
                Stores stores) {
  if (!span.is_frozen()) {
    return span.rule->Update(arrays, gradient, Scaled(step, span.learning_rate_factor), scalars,
                             stores);
  }
  Keep(arrays.weights_in, arrays.weights_out, stores);
  if (!span.keeps_state) return;
  for (const UpdateArrays::State& state : arrays.states) Keep(state.in, state.out, stores);
}

}  // namespace

TensorRules::TensorRules(const OptimizerSpec& optimizer, const TensorLayout& layout,
                         const ParameterRange& range)
    : rule_(RuleWithDecay(optimizer, optimizer.weight_decay)) {
  std::map<double, std::shared_ptr<const UpdateRule>> rules = {{optimizer.weight_decay, rule_}};
  for (const OptionSpan& span :
       OptionSpansWithin(range, layout, optimizer.weight_decay, optimizer.per_tensor)) {
    std::shared_ptr<const UpdateRule>& rule = rules[span.weight_decay];
    if (rule == nullptr) rule = RuleWithDecay(optimizer, span.weight_decay);
    const bool is_frozen = span.learning_rate_factor == 0;
    spans_.push_back({span.range, is_frozen ? nullptr : rule, span.learning_rate_factor});
  }
}

TensorRules TensorRules::Without(std::span<const ParameterRange> ranges) const {
  TensorRules rules = *this;
  rules.spans_.clear();
  const auto add = [&rules](Span span, size_t begin, size_t end) {
    span.range = {begin, end};
    if (begin < end) rules.spans_.push_back(std::move(span));
  };
  for (const Span& span : spans_) {
    size_t begin = span.range.begin;
    auto range = std::ranges::upper_bound(ranges, begin, std::less<>(), &ParameterRange::end);
    for (; range != ranges.end() && range->begin < span.range.end && !span.is_frozen(); ++range) {
      add(span, begin, range->begin);
      const size_t end = std::min(range->end, span.range.end);
      add({.rule = nullptr, .keeps_state = true}, std::max(begin, range->begin), end);
      begin = end;
    }
    add(span, begin, span.range.end);
  }
  return rules;
}

std::vector<TensorRules::Span>::const_iterator TensorRules::Find(size_t position) const {
  const auto found = std::ranges::upper_bound(spans_, position, std::less<>(),
                                              [](const Span& span) { return span.range.end; });
  PS_CHECK(found != spans_.end());
  return found;
}

void TensorRules::Update(size_t begin, const UpdateArrays& arrays, const CombinedGradient& gradient,
                         const StepSize& step, const RuleScalars& scalars, Stores stores) const {
  const size_t count = arrays.weights_in.size();
  if (count == 0) return;
  auto span = Find(begin);
  if (begin + count <= span->range.end) {
    return UpdateSpan(*span, arrays, gradient, step, scalars, stores);
  }
  std::optional<SegmentParts> last;
  if (gradient.last != nullptr) last.emplace(*gradient.last);
  for (size_t done = 0; done < count; ++span) {
    PS_CHECK(span != spans_.end());
    const size_t part = std::min(span->range.end - begin, count) - done;
    CombinedGradient of_part = gradient;
    if (!gradient.sum.empty()) of_part.sum = gradient.sum.subspan(done, part);
    Segments last_part;
    if (last.has_value()) {
      last_part = last->Next(part * sizeof(float));
      of_part.last = &last_part;
    }
    UpdateSpan(*span, Part(arrays, done, part), of_part, step, scalars, stores);
    done += part;
  }
}

void TensorRules::FinishTensor(size_t begin, std::span<const float> weights_in,
                               std::span<float> weights_out, const StepSize& step) const {
  const Span& span = SpanAt(begin);
  PS_CHECK(begin + weights_in.size() <= span.range.end);
  if (span.is_frozen()) return;
  span.rule->FinishTensor(weights_in, weights_out, Scaled(step, span.learning_rate_factor));
}

}  // namespace slipstream
