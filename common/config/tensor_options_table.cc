#include "common/config/tensor_options_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "common/config/suggestion.h"

namespace slipstream {
namespace {

constexpr const char* kPath = "optimizer.per_tensor";

/// Returns a setting that an item may leave out.
RecordField<TensorOptions> Optional(std::string name, std::string doc, ScalarType type,
                                    std::optional<double> TensorOptions::*member) {
  RecordField<TensorOptions> field = {
      .name = std::move(name), .doc = std::move(doc), .type = std::move(type)};
  field.get = [member](const TensorOptions& item) -> std::optional<ScalarValue> {
    if (!(item.*member).has_value()) return std::nullopt;
    return *(item.*member);
  };
  field.set = [member](TensorOptions& item, const ScalarValue& value) {
    item.*member = std::get<double>(value);
  };
  return field;
}

RecordFields<TensorOptions> MakeFields() {
  return {{.name = "match",
           .doc = "The tensors' names, where * stands for any text and ? for any one character.",
           .type = TextType{},
           .is_required = true,
           .get = [](const TensorOptions& item) -> ScalarValue { return item.match; },
           .set = [](TensorOptions& item,
                     const ScalarValue& value) { item.match = std::get<std::string>(value); }},
          Optional("weight_decay", "The decay in the place of optimizer.weight_decay.",
                   NumberType{.max = kWeightDecayMax}, &TensorOptions::weight_decay),
          Optional("learning_rate_factor",
                   "Multiplies the learning rate; 0 leaves the tensors as they are.",
                   NumberType{.max = TensorOptions::kLearningRateFactorMax},
                   &TensorOptions::learning_rate_factor)};
}

/// Returns "0.weight, 0.bias and 6 more".
std::string NameSome(const std::vector<std::string>& names) {
  constexpr size_t kNamedMax = 6;
  if (names.size() <= kNamedMax) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kNamedMax, ", "),
                     names.size() - kNamedMax);
}

/// Returns the names and, after them, the patterns for all tensors of a layer and for all tensors
/// of a kind.
std::vector<std::string> UsualPatterns(const std::vector<std::string>& names) {
  std::vector<std::string> patterns = names;
  std::set<std::string> seen;
  const auto add = [&](std::string pattern) {
    if (seen.insert(pattern).second) patterns.push_back(std::move(pattern));
  };
  for (const std::string& name : names) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) continue;
    add(name.substr(0, dot) + ".*");
    add("*" + name.substr(dot));
  }
  return patterns;
}

}  // namespace

const RecordFields<TensorOptions>& TensorOptionsFields() {
  static const auto& fields = *new RecordFields<TensorOptions>(MakeFields());
  return fields;
}

std::optional<TensorOptions> ReadTensorOptions(size_t place, const YamlNode& node,
                                               DiagnosticList& diagnostics) {
  if (node.kind == YamlNode::Kind::kRefused) return std::nullopt;
  const std::string what = fmt::format("item {} of {}", place + 1, kPath);
  if (node.kind != YamlNode::Kind::kMap) {
    diagnostics.Report(node.source,
                       fmt::format("{} must be a map, as {{match: \"*.bias\", weight_decay: 0}}, "
                                   "not {}",
                                   what, DescribeNode(node)));
    return std::nullopt;
  }
  std::optional<TensorOptions> item =
      ReadRecord(TensorOptionsFields(), what, node.source, node, TensorOptions(), diagnostics);
  if (item && !item->weight_decay && !item->learning_rate_factor) {
    diagnostics.Report(node.source, what + " needs weight_decay or learning_rate_factor");
    return std::nullopt;
  }
  return item;
}

void CheckTensorOptions(const RunDraft& draft, const TensorLayout& layout,
                        DiagnosticList& diagnostics) {
  if (!draft.IsUsable(kPath)) return;
  const std::vector<TensorOptions>& items = draft.spec.optimizer.per_tensor;
  std::vector<std::string> names;
  std::vector<bool> counts(items.size());
  for (const Tensor& tensor : layout.tensors()) {
    names.push_back(tensor.name);
    if (const auto item = FindTensorOptions(items, tensor.name)) counts[*item] = true;
  }
  const bool freezes_all = std::ranges::all_of(names, [&](const std::string& name) {
    const auto item = FindTensorOptions(items, name);
    return item && items[*item].freezes();
  });
  if (freezes_all) {
    diagnostics.Report(draft.KeySource(kPath),
                       "nothing would train: every tensor has a learning_rate_factor of 0");
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (counts[i]) continue;
    std::vector<std::string> matched;
    std::ranges::copy_if(names, std::back_inserter(matched), [&](const std::string& name) {
      return MatchesPattern(items[i].match, name);
    });
    const std::string complaint =
        matched.empty() ? fmt::format("no tensor of the net matches \"{}\"; its tensors are {}{}",
                                      items[i].match, NameSome(names),
                                      DidYouMean(items[i].match, UsualPatterns(names)))
                        : fmt::format(
                              "\"{}\" never counts: items before it count for all tensors that it "
                              "matches, {}",
                              items[i].match, NameSome(matched));
    diagnostics.Report(draft.ItemSource(kPath, i), complaint);
  }
}

}  // namespace slipstream
