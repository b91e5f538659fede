#ifndef SLIPSTREAM_DEPLOY_PSCTL_VALIDATE_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_VALIDATE_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Prints what a configuration would run, or everything that is wrong with it. Returns psctl's exit
/// code.
int ValidateCommand(const ValidateArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_VALIDATE_COMMAND_H_
