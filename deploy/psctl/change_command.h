#ifndef SLIPSTREAM_DEPLOY_PSCTL_CHANGE_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CHANGE_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Changes the policy or the learning rate of a run that trains, and says from when on that holds.
/// Returns psctl's exit code.
int ChangeCommand(const ChangeArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CHANGE_COMMAND_H_
