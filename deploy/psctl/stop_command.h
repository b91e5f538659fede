#ifndef SLIPSTREAM_DEPLOY_PSCTL_STOP_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STOP_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Ends the training of a running cluster now. Its current weights become the final ones, which a
/// worker measures and saves as at any other end. Does not wait for that. Returns psctl's exit
/// code.
int StopCommand(const StopArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STOP_COMMAND_H_
