#ifndef SLIPSTREAM_DEPLOY_PSCTL_POLICY_OPTIONS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_POLICY_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace slipstream {

/// Adds the name of a policy, and an option for each parameter of the policies that can take over
/// while a run trains. They are appended to `settings`, as `key=value`; that must outlive
/// `command`.
void AddPolicyOptions(CLI::App& command, std::vector<std::string>& settings);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_POLICY_OPTIONS_H_
