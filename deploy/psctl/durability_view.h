#ifndef SLIPSTREAM_DEPLOY_PSCTL_DURABILITY_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_DURABILITY_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/psctl/text_table.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Beside three intervals, a checkpoint may be so old, as writing a large one takes time.
inline constexpr double kCheckpointWriteSecondsMax = 30;

/// Returns whether the servers of the run save checkpoints.
bool HasDurability(const v1::RunStatus& status);

/// Returns how often shards have gone on from a checkpoint. Where shards are in step, all do so
/// together, and each counts.
uint64_t Returns(const v1::RunStatus& status);

/// Returns text such as "every 10.0 s; the oldest of the last ones 4.10 s ago, together 12.4 MiB; 1
/// return, 34 versions lost". REQUIRES: HasDurability(status).
std::string CheckpointsText(const v1::RunStatus& status);

/// Returns "120, 4.10 s ago" for the newest checkpoint of a shard; "-" before the first.
std::string CheckpointText(const v1::ShardStatus& shard);

/// Returns a line for each shard whose last checkpoint failed, or is too old, and for each that has
/// made fewer versions since it returned to a checkpoint than it has lost.
std::vector<ScreenLine> CheckpointAlarms(const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_DURABILITY_VIEW_H_
