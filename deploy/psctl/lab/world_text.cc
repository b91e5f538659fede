#include "deploy/psctl/lab/world_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/json/json_text.h"

namespace slipstream {
namespace {

/// JSON's texts in quotes are YAML's.
std::string Quoted(const std::string& text) { return JsonCompact(nlohmann::json(text)); }

std::string ScalarText(const YamlNode& node) {
  constexpr std::string_view kOfFlow = ",[]{}:#&*!|>'\"%@`\n";
  const bool needs_quotes =
      node.is_quoted || node.text.empty() || node.text.find_first_of(kOfFlow) != std::string::npos;
  return needs_quotes ? Quoted(node.text) : node.text;
}

std::string KeyText(const std::string& key) {
  YamlNode node;
  node.text = key;
  return ScalarText(node);
}

auto Find(auto& entries, std::string_view key) {
  return std::ranges::find(entries, key, &YamlNode::Entry::key);
}

/// Cuts the first part off a path.
std::string_view TakePart(std::string_view& path) {
  const size_t end = std::min(path.find('.'), path.size());
  const std::string_view part = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return part;
}

}  // namespace

std::string FlowText(const YamlNode& node) {
  std::string text;
  switch (node.kind) {
    case YamlNode::Kind::kScalar:
      return ScalarText(node);
    case YamlNode::Kind::kMap:
      for (const YamlNode::Entry& entry : node.entries) {
        text += (text.empty() ? "" : ", ") + KeyText(entry.key) + ": " + FlowText(entry.value);
      }
      return "{" + text + "}";
    case YamlNode::Kind::kList:
      for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + FlowText(item);
      return "[" + text + "]";
    case YamlNode::Kind::kNothing:
    case YamlNode::Kind::kRefused:
      break;
  }
  return "null";
}

std::string MapText(const YamlNode& map) {
  std::string text;
  for (const YamlNode::Entry& entry : map.entries) {
    text += KeyText(entry.key) + ": " + FlowText(entry.value) + "\n";
  }
  return text;
}

const YamlNode* FindIn(const YamlNode& map, std::string_view path) {
  const YamlNode* node = &map;
  while (!path.empty()) {
    const auto found = Find(node->entries, TakePart(path));
    if (found == node->entries.end()) return nullptr;
    node = &found->value;
  }
  return node;
}

void SetIn(YamlNode& map, std::string_view path, const YamlNode& value) {
  map.kind = YamlNode::Kind::kMap;
  const std::string_view part = TakePart(path);
  auto found = Find(map.entries, part);
  if (found == map.entries.end()) {
    map.entries.push_back({.key = std::string(part), .key_source = value.source, .value = {}});
    found = std::prev(map.entries.end());
  }
  if (path.empty()) {
    found->value = value;
  } else {
    SetIn(found->value, path, value);
  }
}

}  // namespace slipstream
