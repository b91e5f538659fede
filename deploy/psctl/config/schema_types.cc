#include "deploy/psctl/config/schema_types.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "common/base/limits.h"
#include "common/config/layer_table.h"
#include "common/config/record_fields.h"
#include "common/config/slowdown_table.h"
#include "common/config/stage_table.h"
#include "common/config/tensor_options_table.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

// The form of a number before a unit, as in scalar_reader.cc.
constexpr char kDecimal[] = R"(\+?([0-9]+\.?[0-9]*|\.[0-9]+))";

/// Returns a choice as YAML's readers have it: true and false are no text to them.
Json ChoiceJson(const std::string& name) {
  if (name == "true" || name == "false") return name == "true";
  return name;
}

struct SchemaOfScalar {
  Json operator()(const CountType& type) const {
    if (type.min == type.max) return {{"const", type.min}};
    Json schema = {{"type", "integer"}, {"minimum", type.min}};
    // Some readers of JSON cannot represent the largest numbers.
    if (type.max != std::numeric_limits<uint64_t>::max()) schema["maximum"] = type.max;
    return schema;
  }

  Json operator()(const BytesType& type) const {
    Json plain = {{"type", "integer"}, {"minimum", type.min}, {"maximum", type.max}};
    if (type.multiple_of > 1) plain["multipleOf"] = type.multiple_of;
    const Json with_unit = {{"type", "string"},
                            {"pattern", std::string("^") + kDecimal + "(KiB|MiB|GiB)$"}};
    Json forms = Json::array({plain, with_unit});
    if (type.takes_zero) forms.push_back({{"const", 0}});
    return {{"anyOf", forms}};
  }

  Json operator()(const NumberType& type) const {
    Json schema = {{"type", "number"}};
    schema[type.is_min_excluded ? "exclusiveMinimum" : "minimum"] = type.min;
    if (std::isfinite(type.max)) {
      schema[type.is_max_excluded ? "exclusiveMaximum" : "maximum"] = type.max;
    }
    return schema;
  }

  Json operator()(const DurationType&) const {
    return {{"type", "string"}, {"pattern", std::string("^") + kDecimal + "(ms|s|m|h)$"}};
  }

  Json operator()(const FlagType&) const { return {{"type", "boolean"}}; }

  Json operator()(const TextType& type) const {
    // Digits alone are text to our parser, but a number by the rules of YAML.
    Json schema = {{"type", Json::array({"string", "number"})}};
    if (type.form == TextType::Form::kName) {
      schema["pattern"] = "^[A-Za-z0-9._-]{1,64}$";
    } else if (type.form == TextType::Form::kDevice) {
      schema = {{"type", "string"},
                {"pattern", "^(auto|cpu|cuda(:[0-9]{1,3}(,[0-9]{1,3}){0,15})?)$"}};
    } else {
      schema["maxLength"] = TextType::kBytesMax;
    }
    return schema;
  }

  Json operator()(const ChoiceType& type) const {
    Json names = Json::array();
    for (const std::string& name : type.names) names.push_back(ChoiceJson(name));
    return {{"enum", names}};
  }
};

Json ScalarSchema(const ScalarType& type) { return std::visit(SchemaOfScalar(), type); }

Json ScalarJson(const ScalarType& type, const ScalarValue& value) {
  if (std::holds_alternative<CountType>(type)) return std::get<uint64_t>(value);
  if (std::holds_alternative<NumberType>(type)) return std::get<double>(value);
  if (std::holds_alternative<FlagType>(type)) return std::get<bool>(value);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const std::string written = WriteScalar(type, value);
  // A number of bytes without a unit is a JSON number.
  const bool is_plain = std::holds_alternative<BytesType>(type) &&
                        written.find_first_not_of("0123456789") == std::string::npos;
  return is_plain ? Json(std::get<uint64_t>(value)) : Json(written);
}

/// Returns the schema of a map of these settings. If none is required, the map may be null.
template <typename Record>
Json MapSchema(const RecordFields<Record>& fields, const Record& defaults) {
  Json settings = Json::object();
  Json required = Json::array();
  for (const RecordField<Record>& field : fields) {
    Json schema = ScalarSchema(field.type);
    schema["description"] = field.doc;
    if (field.is_required) {
      required.push_back(field.name);
    } else if (const auto value = field.get(defaults)) {
      schema["default"] = ScalarJson(field.type, *value);
    }
    settings[field.name] = std::move(schema);
  }
  Json map = {{"type", required.empty() ? Json::array({"object", "null"}) : Json("object")},
              {"properties", std::move(settings)},
              {"additionalProperties", false}};
  if (!required.empty()) map["required"] = required;
  return map;
}

/// Returns the schema of a layer such as `conv2d: {channels: 6}`, or its name alone if no setting
/// is required.
Json LayerSchema(const LayerKind& kind) {
  Json map = MapSchema(kind.fields, kind.defaults);
  const bool may_be_a_name = !map.contains("required");
  Json layer = {{"description", kind.doc},
                {"type", "object"},
                {"properties", {{kind.name, std::move(map)}}},
                {"required", Json::array({kind.name})},
                {"additionalProperties", false}};
  if (!may_be_a_name) return layer;
  const Json name = {{"const", kind.name}, {"description", kind.doc}};
  return {{"anyOf", Json::array({name, std::move(layer)})}};
}

struct SchemaOf {
  Json operator()(const ScalarType& type) const { return ScalarSchema(type); }

  Json operator()(const ListType& type) const {
    return {{"type", "array"},
            {"items", ScalarSchema(type.element)},
            {"minItems", type.items_min},
            {"maxItems", type.items_max}};
  }

  Json operator()(const LayersType&) const {
    Json kinds = Json::array();
    for (const LayerKind& kind : LayerKinds()) kinds.push_back(LayerSchema(kind));
    return {{"type", "array"}, {"items", {{"anyOf", std::move(kinds)}}}, {"minItems", 1}};
  }

  Json operator()(const SlowdownsType&) const {
    return {{"type", "array"},
            {"items", MapSchema(SlowdownFields(), WorkerSlowdown())},
            {"maxItems", kWorkersMax}};
  }

  Json operator()(const StagesType&) const {
    return {{"type", "array"},
            {"items", MapSchema(StageFields(), PolicyStage())},
            {"maxItems", kPolicyStagesMax - 1}};
  }

  Json operator()(const TensorOptionsType&) const {
    Json item = MapSchema(TensorOptionsFields(), TensorOptions());
    Json forms = Json::array();  // An item has an option at least.
    for (const RecordField<TensorOptions>& field : TensorOptionsFields()) {
      if (!field.is_required) forms.push_back({{"required", Json::array({field.name})}});
    }
    item["anyOf"] = std::move(forms);
    return {{"type", "array"}, {"items", std::move(item)}, {"maxItems", TensorOptions::kItemsMax}};
  }
};

struct JsonOf {
  const FieldValue& value;

  Json operator()(const ScalarType& type) const {
    return ScalarJson(type, std::get<ScalarValue>(value));
  }

  Json operator()(const ListType& type) const {
    Json items = Json::array();
    for (const ScalarValue& item : std::get<std::vector<ScalarValue>>(value)) {
      items.push_back(ScalarJson(type.element, item));
    }
    return items;
  }

  Json operator()(const LayersType&) const { return Json::array(); }
  Json operator()(const SlowdownsType&) const { return Json::array(); }
  Json operator()(const StagesType&) const { return Json::array(); }
  Json operator()(const TensorOptionsType&) const { return Json::array(); }
};

}  // namespace

Json TypeSchema(const FieldType& type) { return std::visit(SchemaOf(), type); }

Json ValueJson(const FieldType& type, const FieldValue& value) {
  return std::visit(JsonOf{value}, type);
}

}  // namespace slipstream
