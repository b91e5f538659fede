#ifndef SLIPSTREAM_DEPLOY_PSCTL_SAVE_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_SAVE_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Has all servers of a run save a checkpoint, and prints a line for each shard. Returns the exit
/// code: kTemporary if not all have saved within the time.
int SaveCommand(const SaveArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_SAVE_COMMAND_H_
