#include "deploy/psctl/config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/config/combination_checks.h"
#include "common/config/field_table.h"
#include "common/settings/consistency_spec.h"
#include "deploy/psctl/config/schema_types.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> parts;
  for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
    parts.emplace_back(path.substr(0, dot));
    path.remove_prefix(dot + 1);
  }
  parts.emplace_back(path);
  return parts;
}

/// Returns whether an empty list or text means the same as an absent key.
bool IsEmpty(const Json& value) {
  return value.is_null() || (value.is_array() && value.empty()) || value == "";
}

Json FieldSchema(const Field& field) {
  Json schema = {
      {"description", fmt::format("{} Must be {}.", field.doc, DescribeField(field.type))}};
  if (field.condition.has_value()) {
    schema["description"] =
        fmt::format("{} Only with {} {}.", schema["description"].get<std::string>(),
                    field.condition->path, fmt::join(field.condition->choices, " or "));
  }
  if (const std::string others = DescribeCombinations(field.path); !others.empty()) {
    schema["description"] = fmt::format("{} {}", schema["description"].get<std::string>(), others);
  }
  schema.update(TypeSchema(field.type));
  Json value = ValueJson(field.type, field.default_value());
  if (!IsEmpty(value)) schema["default"] = std::move(value);
  return schema;
}

Json SectionSchema() {
  return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
}

void AddField(const Field& field, Json& root) {
  std::vector<std::string> sections = Split(field.path);
  sections.pop_back();
  Json* section = &root;
  for (const std::string& name : sections) {
    Json& properties = (*section)["properties"];
    if (!properties.contains(name)) properties[name] = SectionSchema();
    section = &properties[name];
  }
  (*section)["properties"][field.name()] = FieldSchema(field);
}

/// Returns a schema of the whole file that demands `inner` of the key at `path`. The key has to be
/// given if `must_be_there` is set, and may otherwise be left out.
Json AtPath(const std::string& path, Json inner, bool must_be_there) {
  const std::vector<std::string> parts = Split(path);
  Json schema = std::move(inner);
  for (size_t i = parts.size(); i-- > 0;) {
    Json outer = {{"properties", {{parts[i], std::move(schema)}}}};
    if (must_be_there) outer["required"] = Json::array({parts[i]});
    schema = std::move(outer);
  }
  return schema;
}

/// Returns a rule that refuses a key unless the key that it depends on has one of the choices, be
/// it by default.
Json ConditionSchema(const Field& field) {
  const Condition& condition = *field.condition;
  const Field* decider = FindField(condition.path);
  PS_CHECK(decider != nullptr);
  const Json decided = ValueJson(decider->type, decider->default_value());
  const bool holds_by_default =
      std::ranges::any_of(condition.choices, [&](const auto& choice) { return decided == choice; });
  return {{"if", AtPath(condition.path, {{"enum", condition.choices}}, !holds_by_default)},
          {"else", AtPath(field.path, false, /*must_be_there=*/false)}};
}

/// A net has a name, or an input and layers, or is the workers'.
Json ModelChoice() {
  const Json forbidden = false;
  const Json preset = {{"required", Json::array({"preset"})},
                       {"properties", {{"input", forbidden}, {"layers", forbidden}}}};
  const Json layers = {{"required", Json::array({"input", "layers"})},
                       {"properties", {{"preset", forbidden}}}};
  const Json theirs = {{"required", Json::array({"from"})},
                       {"properties",
                        {{"from", {{"enum", Json::array({"workers"})}}},
                         {"preset", forbidden},
                         {"input", forbidden},
                         {"layers", forbidden}}}};
  return Json::array({preset, layers, theirs});
}

/// A section that may be written as a list, whose last item is the section and whose others are its
/// key "before".
Json ListOrSection(Json section) {
  Json list = {{"type", "array"},
               {"items", {{"type", "object"}}},
               {"minItems", 1},
               {"maxItems", kPolicyStagesMax}};
  return {{"anyOf", Json::array({std::move(section), std::move(list)})}};
}

}  // namespace

Json ConfigSchema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "run.yaml"},
                 {"description", "One run of Slipstream, for all its servers and workers."}};
  schema.update(SectionSchema());
  Json conditions = Json::array();
  for (const Field& field : Fields()) {
    AddField(field, schema);
    if (field.condition.has_value()) conditions.push_back(ConditionSchema(field));
  }
  schema["properties"]["model"]["oneOf"] = ModelChoice();
  Json& consistency = schema["properties"]["consistency"];
  consistency = ListOrSection(std::move(consistency));
  schema["required"] = Json::array({"model"});
  schema["allOf"] = std::move(conditions);
  return schema;
}

}  // namespace slipstream
