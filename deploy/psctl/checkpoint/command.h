#ifndef SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// psctl checkpoint: reads the checkpoints of a directory; servers may be writing there meanwhile.
/// `ls` lists them. `verify` reads and checks all of each, and names what is damaged where.
/// `inspect` prints what one holds. `export` joins the weights of all shards into a model file,
/// which it writes whole or not at all. Returns psctl's exit code.
int CheckpointCommand(const CheckpointArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_COMMAND_H_
