#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Runs a whole cluster on this machine: checks the configuration, starts servers and workers,
/// shows progress on stderr, and prints and saves a summary. Whatever happens, no process is left.
/// Returns psctl's exit code; 128 + the signal if it was asked to stop.
int RunCommand(const RunArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_COMMAND_H_
