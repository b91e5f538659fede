#ifndef SLIPSTREAM_DEPLOY_PSCTL_SLURM_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_SLURM_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Writes a batch script that runs `psctl node` on each node of a Slurm job, and submits it, or
/// only prints it. Returns psctl's exit code.
int SlurmCommand(const SlurmArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_SLURM_COMMAND_H_
