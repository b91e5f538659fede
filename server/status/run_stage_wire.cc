#include "server/status/run_stage_wire.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

absl::StatusOr<RunStage> FromWire(const v1::RunStage& wire) {
  RunStage stage = {.learning_rate = wire.learning_rate(),
                    .until_epoch = wire.until_epoch(),
                    .begins_at_once = wire.begins_at_once()};
  const auto row = std::ranges::find(kPolicyRows, wire.policy(), &PolicyRow::name);
  if (row == kPolicyRows.end()) {
    return absl::InvalidArgumentError("stages.policy: no policy is named " + wire.policy());
  }
  stage.consistency.policy = row->kind;
  for (const v1::PolicyParameter& parameter : wire.parameters()) {
    if (std::ranges::find(row->parameters, parameter.key()) == row->parameters.end() ||
        parameter.key().empty()) {
      return absl::InvalidArgumentError("stages.parameters: " + wire.policy() +
                                        " has no parameter " + parameter.key());
    }
    stage.consistency.parameters[parameter.key()] = parameter.value();
  }
  return stage;
}

}  // namespace

v1::RunStage ToWire(const RunStage& stage) {
  v1::RunStage wire;
  const PolicyRow& row = RowOf(stage.consistency.policy);
  wire.set_policy(std::string(row.name));
  for (const auto& [key, value] : ParametersOf(row, stage.consistency.parameters)) {
    v1::PolicyParameter& parameter = *wire.add_parameters();
    parameter.set_key(std::string(key));
    parameter.set_value(value);
  }
  wire.set_learning_rate(stage.learning_rate);
  wire.set_until_epoch(stage.until_epoch);
  wire.set_begins_at_once(stage.begins_at_once);
  return wire;
}

absl::StatusOr<std::vector<RunStage>> FromWire(
    const google::protobuf::RepeatedPtrField<v1::RunStage>& wire) {
  if (static_cast<size_t>(wire.size()) > kRunStagesMax) {
    return absl::InvalidArgumentError("stages: " + std::to_string(wire.size()) + " stages");
  }
  std::vector<RunStage> stages;
  for (const v1::RunStage& one : wire) {
    absl::StatusOr<RunStage> stage = FromWire(one);
    if (!stage.ok()) return stage.status();
    stages.push_back(*std::move(stage));
  }
  return stages;
}

}  // namespace slipstream
