#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_YAML_JSON_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_YAML_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace slipstream {

/// Returns `value` as YAML in block style, with a newline at the end. Readers of YAML 1.1 and 1.2
/// understand it alike, because strings are quoted and numbers with an exponent have a point.
std::string JsonToYaml(const nlohmann::ordered_json& value);

/// Returns the document as JSON. Plain scalars that read as null, true, false or a number become
/// that.
/// REQUIRES: `text` is well-formed YAML.
nlohmann::ordered_json YamlToJson(const std::string& text);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_YAML_JSON_H_
