#include "common/config/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

RecordField<PolicyStage> PolicyField() {
  std::vector<std::string> names;
  for (const PolicyRow& row : kPolicyRows) names.emplace_back(row.name);
  RecordField<PolicyStage> field = {.name = "policy",
                                    .doc = "The policy, as in consistency.policy.",
                                    .type = ChoiceType{names},
                                    .is_required = true};
  field.get = [](const PolicyStage& stage) -> ScalarValue {
    return std::string(RowOf(stage.consistency.policy).name);
  };
  field.set = [](PolicyStage& stage, const ScalarValue& value) {
    const auto row = std::ranges::find(kPolicyRows, std::get<std::string>(value), &PolicyRow::name);
    PS_CHECK(row != kPolicyRows.end());  // ReadScalar checked it.
    stage.consistency.policy = row->kind;
  };
  return field;
}

RecordField<PolicyStage> EpochField() {
  RecordField<PolicyStage> field = {.name = "until_epoch",
                                    .doc =
                                        "The number of epochs of the run after which the next "
                                        "policy takes over.",
                                    .type = CountType{1, kEpochsMax},
                                    .is_required = true};
  field.get = [](const PolicyStage& stage) -> ScalarValue { return uint64_t{stage.until_epoch}; };
  field.set = [](PolicyStage& stage, const ScalarValue& value) {
    stage.until_epoch = static_cast<uint32_t>(std::get<uint64_t>(value));
  };
  return field;
}

RecordField<PolicyStage> FieldOf(const ParameterRow& row) {
  PS_CHECK(row.is_whole);  // All parameters of policies are, so far.
  RecordField<PolicyStage> field = {
      .name = std::string(row.key),
      .doc = std::string(row.doc),
      .type = CountType{static_cast<uint64_t>(row.min), static_cast<uint64_t>(row.max)}};
  field.get = [row](const PolicyStage& stage) -> std::optional<ScalarValue> {
    const PolicyRow& policy = RowOf(stage.consistency.policy);
    const PolicyParameters& parameters = stage.consistency.parameters;
    const bool is_taken = std::ranges::count(policy.parameters, row.key) > 0;
    if (!is_taken || !parameters.IsOn(row.key)) return std::nullopt;
    return static_cast<uint64_t>(parameters[row.key]);
  };
  field.set = [row](PolicyStage& stage, const ScalarValue& value) {
    stage.consistency.parameters[row.key] = static_cast<double>(std::get<uint64_t>(value));
  };
  return field;
}

RecordFields<PolicyStage> MakeStageFields() {
  RecordFields<PolicyStage> fields = {PolicyField(), EpochField()};
  for (const ParameterRow& row : kPolicyParameters) fields.push_back(FieldOf(row));
  return fields;
}

}  // namespace

const RecordFields<PolicyStage>& StageFields() {
  static const auto& fields = *new RecordFields<PolicyStage>(MakeStageFields());
  return fields;
}

std::optional<PolicyStage> ReadStage(size_t place, const YamlNode& node,
                                     DiagnosticList& diagnostics) {
  if (node.kind == YamlNode::Kind::kRefused) return std::nullopt;
  const std::string what = fmt::format("policy {} of the run", place + 1);
  if (node.kind != YamlNode::Kind::kMap) {
    diagnostics.Report(node.source,
                       fmt::format("{} must be a map, as {{policy: hardsync, until_epoch: 2}}, "
                                   "not {}",
                                   what, DescribeNode(node)));
    return std::nullopt;
  }
  return ReadRecord(StageFields(), what, node.source, node, PolicyStage(), diagnostics);
}

}  // namespace slipstream
