#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Runs a whole cluster on this machine: checks the configuration, starts servers and workers,
/// shows progress on stderr, and prints and saves a summary. No process of the cluster runs when it
/// returns. Returns psctl's exit code, which is 128 + the signal if a signal asked it to stop.
int RunCommand(const RunArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_COMMAND_H_
