#ifndef SLIPSTREAM_DEPLOY_PSCTL_YAML_JSON_H_
#define SLIPSTREAM_DEPLOY_PSCTL_YAML_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

namespace slipstream {

/// `value` as YAML in block style that readers of YAML 1.1 and 1.2 understand alike: strings are
/// quoted, numbers with an exponent have a point. Ends with a newline.
std::string JsonToYaml(const nlohmann::ordered_json& value);

/// The same document as JSON; plain scalars become null, true, false and numbers where they read as
/// such.
/// REQUIRES: `text` is well-formed YAML.
nlohmann::ordered_json YamlToJson(const std::string& text);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_YAML_JSON_H_
