#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_COMMANDS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_COMMANDS_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Writes a configuration with every key explained. Returns psctl's exit code.
int ConfigInitCommand(const ConfigInitArguments& arguments);

/// Prints a configuration as the programs will see it. Returns psctl's exit code.
int ConfigShowCommand(const ConfigShowArguments& arguments);

/// Prints the JSON Schema of run.yaml.
int ConfigSchemaCommand();

/// Prints what a configuration would run, or everything that is wrong with it. Returns psctl's exit
/// code.
int ValidateCommand(const ValidateArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_COMMANDS_H_
