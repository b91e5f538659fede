#ifndef SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_RESHARD_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_RESHARD_H_

#include <vector>

#include "common/process/exit_code.h"
#include "deploy/psctl/command_line.h"
#include "server/storage/checkpoint_listing.h"
#include "server/storage/disk.h"

namespace slipstream {

/// Makes one checkpoint of each of so many shards out of the newest ones listed: the weights and
/// the optimizer's arrays of its range, and what a run needs that starts from it (StartSpec). The
/// rest of each state is that of the old shard which had the first of its values, so no server goes
/// on with the old run from these. Prints a line for each shard.
ExitCode Reshard(Disk& disk, const CheckpointArguments& arguments,
                 const std::vector<ListedCheckpoint>& listed);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_RESHARD_H_
