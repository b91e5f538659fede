#ifndef SLIPSTREAM_DEPLOY_PSCTL_NODE_OPTIONS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_NODE_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Adds the options of `psctl node` and `psctl slurm`. The arguments must outlive the commands.
void AddNodeOptions(CLI::App& command, NodeArguments& arguments);
void AddSlurmOptions(CLI::App& command, SlurmArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_NODE_OPTIONS_H_
