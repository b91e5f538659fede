#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_WORLD_TEXT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_WORLD_TEXT_H_

#include <string>
#include <string_view>

#include "common/config/yaml_tree.h"

namespace slipstream {

/// Returns a tree as YAML in one line. Scalars keep their texts, and those in quotes their quotes,
/// because only their reader knows what they mean.
std::string FlowText(const YamlNode& node);

/// Returns a map as YAML, a line for each key.
std::string MapText(const YamlNode& map);

/// Returns the value at `path`, such as "compute.fixed", in a map; null if there is none.
const YamlNode* FindIn(const YamlNode& map, std::string_view path);

/// Sets the value at `path` in a map. Values on the way that are no maps become maps.
void SetIn(YamlNode& map, std::string_view path, const YamlNode& value);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_WORLD_TEXT_H_
