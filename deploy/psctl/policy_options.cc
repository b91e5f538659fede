#include "deploy/psctl/policy_options.h"

#include <set>
#include <string_view>

#include "common/run/policy_rows.h"

namespace slipstream {
namespace {

CLI::Option* Add(CLI::App& command, const std::string& option, const std::string& key,
                 std::string_view doc, std::vector<std::string>& settings) {
  return command.add_option_function<std::string>(
      option,
      [key, &settings](const std::string& value) {
        settings.push_back("consistency." + key + "=" + value);
      },
      std::string(doc));
}

}  // namespace

void AddPolicyOptions(CLI::App& command, std::vector<std::string>& settings) {
  // Whether a policy can take over is the coordinator's to say; help names those that can.
  std::string names;
  std::set<std::string_view> parameters;
  for (const PolicyRow& row : kPolicyRows) {
    if (row.traits.in_step || !row.traits.makes_versions()) continue;
    names += (names.empty() ? "" : "|") + std::string(row.name);
    parameters.insert(row.parameters.begin(), row.parameters.end());
  }
  Add(command, "policy", "policy", "The policy to set", settings)->type_name(names)->required();
  for (const ParameterRow& row : kPolicyParameters) {
    if (!parameters.contains(row.key)) continue;
    const std::string key(row.key);
    Add(command, "--" + key, key, row.doc, settings)->type_name("NUMBER");
  }
}

}  // namespace slipstream
