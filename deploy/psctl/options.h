#ifndef SLIPSTREAM_DEPLOY_PSCTL_OPTIONS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/config/scalar_types.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/command_line.h"

namespace slipstream {

// Options that commands of psctl have. The variables that they fill in must outlive the command.

/// Adds an option whose value is a time with a unit.
CLI::Option* AddDuration(CLI::App& command, const std::string& flag, const DurationType& type,
                         absl::Duration& duration, const std::string& doc);

/// Adds an option whose value is a number in the range of `type`.
CLI::Option* AddCount(CLI::App& command, const std::string& flag, const CountType& type,
                      uint32_t& count, const std::string& doc);

/// Adds --restart and --restart-max.
void AddRestart(CLI::App& command, RestartChoice& choice, uint32_t& starts_max);

/// Adds the path of a run.yaml, and --set.
void AddConfig(CLI::App& command, ConfigArguments& arguments);

/// Adds -o, which takes one of `choices`. The value that `format` has is the default.
void AddFormat(CLI::App& command, OutputFormat& format, const std::vector<OutputFormat>& choices);

/// Adds --coordinator, and the flags with psctl's credentials.
void AddPeer(CLI::App& command, std::string& coordinator, SecuritySpec& security);

/// Adds the name of a policy, and an option for each parameter of the policies that can take over
/// while a run trains. They are appended to `settings`, as `key=value`.
void AddPolicyOptions(CLI::App& command, std::vector<std::string>& settings);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_OPTIONS_H_
