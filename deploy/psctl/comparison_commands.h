#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_COMMANDS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_COMMANDS_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// `psctl compare`: the figures of finished runs side by side on stdout. Returns the exit code;
/// what is wrong with any directory is on stderr then.
int CompareCommand(const CompareArguments& arguments);

/// `psctl plot`: a picture of finished runs, whose path is on stdout. Returns the exit code.
int PlotCommand(const PlotArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_COMMANDS_H_
