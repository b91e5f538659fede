#include "deploy/psctl/config/yaml_json.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/json/json_text.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

bool IsLeaf(const Json& value) { return !value.is_structured() || value.empty(); }

std::string LeafText(const Json& value) {
  std::string text = JsonCompact(value);
  // Readers of YAML 1.1 take 1e-05 for a string.
  const size_t exponent = value.is_number_float() ? text.find('e') : text.npos;
  if (exponent != text.npos && text.find('.') == text.npos) text.insert(exponent, ".0");
  return text;
}

std::string FlowText(const Json& leaves) {
  std::string text;
  for (const Json& leaf : leaves) text += (text.empty() ? "" : ", ") + LeafText(leaf);
  return "[" + text + "]";
}

bool FitsInFlow(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), IsLeaf);
}

/// Appends `value` behind a key or a dash that stands in column `indent`.
void AppendValue(const Json& value, size_t indent, std::string& text) {
  const std::string margin(indent, ' ');
  if (IsLeaf(value)) {
    text += " " + LeafText(value) + "\n";
  } else if (FitsInFlow(value)) {
    text += " " + FlowText(value) + "\n";
  } else {
    text += "\n";
    for (const auto& [key, item] : value.items()) {
      text += margin;
      text += value.is_array() ? "-" : key + ":";
      AppendValue(item, indent + 2, text);
    }
  }
}

Json ScalarToJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // It was quoted.
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_number() || parsed.is_boolean() || parsed.is_null() ? parsed : Json(text);
}

Json NodeToJson(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: {
      Json object = Json::object();
      for (const auto& entry : node) object[entry.first.Scalar()] = NodeToJson(entry.second);
      return object;
    }
    case YAML::NodeType::Sequence: {
      Json array = Json::array();
      for (const auto& item : node) array.push_back(NodeToJson(item));
      return array;
    }
    case YAML::NodeType::Scalar:
      return ScalarToJson(node);
    default:
      return nullptr;
  }
}

}  // namespace

std::string JsonToYaml(const Json& value) {
  std::string text;
  AppendValue(value, 0, text);
  // Append() begins with the line break or blank that follows a key; the document has no key.
  text.erase(0, 1);
  return text;
}

Json YamlToJson(const std::string& text) { return NodeToJson(YAML::Load(text)); }

}  // namespace slipstream
