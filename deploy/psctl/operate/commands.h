#ifndef SLIPSTREAM_DEPLOY_PSCTL_OPERATE_COMMANDS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_OPERATE_COMMANDS_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Changes the policy or the learning rate of a run that trains, and says from when on that holds.
/// Returns psctl's exit code.
int ChangeCommand(const ChangeArguments& arguments);

/// Ends the training of a running cluster now. Its current weights become the final ones, which a
/// worker measures and saves as at any other end. Does not wait for that. Returns psctl's exit
/// code.
int StopCommand(const StopArguments& arguments);

/// Has all servers of a run save a checkpoint, and prints a line for each shard. Returns the exit
/// code: kTemporary if not all have saved within the time.
int SaveCommand(const SaveArguments& arguments);

/// Ends servers of a run, one after another, and prints a line for each once it has drained, or why
/// it has not. Returns the exit code, which is that of the first failure.
int DrainCommand(const DrainArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_OPERATE_COMMANDS_H_
