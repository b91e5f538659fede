#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_DURABILITY_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_DURABILITY_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/psctl/text_table.h"
#include "proto/operation.pb.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Returns whether the servers of the run save checkpoints.
bool HasDurability(const v1::RunStatus& status);

/// Returns how often shards have gone on from a checkpoint. Where shards are in step, all do so
/// together, and each counts.
uint64_t ReturnsOf(const v1::RunStatus& status);

/// Returns text such as "every 10.0 s; the oldest of the last ones 4.10 s ago, together 12.4 MiB; 1
/// return, at least 34 versions lost". REQUIRES: HasDurability(status).
std::string CheckpointsText(const v1::RunStatus& status);

/// Returns the checkpoint of another run that the run began with, as its first shard names it;
/// empty if there is none.
std::string StartText(const v1::RunStatus& status);

/// Returns "120, 4.10 s ago" for the newest checkpoint of a shard; "-" before the first.
std::string CheckpointText(const v1::ShardStatus& shard);

/// Returns a line for each shard, such as "shard 0: version 120, 12.4 MiB, written in 310 ms", or
/// why it has not saved.
std::string SavesText(const v1::SaveCheckpointReply& reply);

/// Returns a line such as "server 1 has drained at version 124; its newest checkpoint has version
/// 120". Its version is not named if the server has made none, or had yet to go on.
std::string DrainedText(uint32_t server, const v1::DrainReply& reply);

/// Returns whether the servers of the run keep logs.
bool HasLogs(const v1::RunStatus& status);

/// Returns text such as "12.4 MiB written, 8.20 events a batch, at most 3.10 ms each; 1 shard went
/// on from its log, 2300 events". REQUIRES: HasLogs(status).
std::string LogsText(const v1::RunStatus& status);

/// Returns "12.4 MiB, 3.10 ms" for what a shard has written to its log, and how long a batch takes;
/// "-" without a log.
std::string LogText(const v1::ShardStatus& shard);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_DURABILITY_VIEW_H_
