#ifndef SLIPSTREAM_SERVER_STATUS_STATUS_WAITS_H_
#define SLIPSTREAM_SERVER_STATUS_STATUS_WAITS_H_

#include "proto/status.pb.h"
#include "server/status/shard_lines.h"
#include "server/status/status_facts.h"

namespace slipstream {

/// The parts of a status that show who keeps others waiting. They compare workers, and shards with
/// leases.

/// Fills in the workers' paces and marks the stragglers among them. The least figure of all shards
/// counts: a step begins with the last of the shards' answers, and the figures of the other shards
/// include the wait for it.
void AddStragglers(const StatusFacts& facts, const ShardLines& lines, v1::RunStatus& status);

/// Adds the open rounds that wait, with what will happen to each.
void AddWaitingRounds(const StatusFacts& facts, v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_STATUS_WAITS_H_
