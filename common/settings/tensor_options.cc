#include "common/settings/tensor_options.h"

#include <algorithm>
#include <utility>

namespace slipstream {

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  size_t at = 0;  // The place in the pattern.
  size_t star = std::string_view::npos;
  size_t star_end = 0;  // Where the text that the last star stands for ends in the name.
  for (size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      star_end = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      // Only the last star need take more: what is before it matches wherever the star begins.
      at = star + 1;
      i = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

std::optional<size_t> FindTensorOptions(const std::vector<TensorOptions>& items,
                                        std::string_view name) {
  const auto found = std::ranges::find_if(
      items, [name](const TensorOptions& item) { return MatchesPattern(item.match, name); });
  if (found == items.end()) return std::nullopt;
  return static_cast<size_t>(found - items.begin());
}

std::vector<TensorOptions> WithFreezingAlone(std::vector<TensorOptions> items) {
  for (TensorOptions& item : items) {
    // An item that freezes nothing stays, since it may keep tensors from one further down.
    item.weight_decay.reset();
    if (!item.freezes()) item.learning_rate_factor.reset();
  }
  return items;
}

std::vector<OptionSpan> OptionSpansWithin(const ParameterRange& range, const TensorLayout& layout,
                                          double weight_decay,
                                          const std::vector<TensorOptions>& items) {
  if (items.empty()) return {{.range = {0, range.size()}, .weight_decay = weight_decay}};
  std::vector<OptionSpan> spans;
  for (const Tensor& tensor : layout.tensors()) {
    const size_t begin = std::max(tensor.offset, range.begin);
    const size_t end = std::min(tensor.offset + tensor.size(), range.end);
    if (begin >= end) continue;
    OptionSpan span = {{begin - range.begin, end - range.begin}, weight_decay};
    if (const std::optional<size_t> item = FindTensorOptions(items, tensor.name)) {
      span.weight_decay = items[*item].weight_decay.value_or(weight_decay);
      span.learning_rate_factor = items[*item].learning_rate_factor.value_or(1);
    }
    const bool continues = !spans.empty() && spans.back().weight_decay == span.weight_decay &&
                           spans.back().learning_rate_factor == span.learning_rate_factor;
    if (continues) {
      spans.back().range.end = span.range.end;
    } else {
      spans.push_back(span);
    }
  }
  return spans;
}

std::vector<ParameterRange> FrozenWithin(const ParameterRange& range, const TensorLayout& layout,
                                         const std::vector<TensorOptions>& items) {
  std::vector<ParameterRange> frozen;
  for (const OptionSpan& span : OptionSpansWithin(range, layout, /*weight_decay=*/0, items)) {
    if (span.learning_rate_factor == 0) frozen.push_back(span.range);
  }
  return frozen;
}

}  // namespace slipstream
