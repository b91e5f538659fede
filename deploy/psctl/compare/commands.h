#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_COMMANDS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_COMMANDS_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Runs `psctl compare`: prints the figures of finished runs side by side to stdout. Returns the
/// exit code. If any directory cannot be read, prints only the reasons, to stderr.
int CompareCommand(const CompareArguments& arguments);

/// Runs `psctl plot`: writes a picture of finished runs and prints its path to stdout. Returns the
/// exit code.
int PlotCommand(const PlotArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_COMMANDS_H_
