#ifndef SLIPSTREAM_DEPLOY_PSCTL_DRAIN_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_DRAIN_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Ends servers of a run, one after another, and prints a line for each once it has drained, or why
/// it has not. Returns the exit code, which is that of the first failure.
int DrainCommand(const DrainArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_DRAIN_COMMAND_H_
