#ifndef SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_REPLAY_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_REPLAY_H_

#include <vector>

#include "common/process/exit_code.h"
#include "server/storage/checkpoint_listing.h"
#include "server/storage/disk.h"

namespace slipstream {

/// Redoes the log behind each of these checkpoints, which must be sound and in the order of
/// ListCheckpoints, and compares the result with the next one of the shard. Settings and model are
/// those in coordinator.state, in the directory above the run's. Prints one line for each
/// checkpoint; what differs or cannot be redone goes to stderr, and decides the exit code.
ExitCode ReplayCheckpoints(Disk& disk, const std::vector<ListedCheckpoint>& sound);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_REPLAY_H_
