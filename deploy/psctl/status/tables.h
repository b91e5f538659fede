#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_TABLES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_TABLES_H_

#include <vector>

#include "deploy/psctl/text_table.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Returns a heading and a line for each shard that fit into `size`. If it is narrow, columns are
/// left out. If it is low, lines are left out, first those of healthy shards, and the last line
/// says how many. The generation and the newest checkpoint of each are shown if the run saves
/// checkpoints, and what is in its log if it keeps one. REQUIRES: size.rows > 1.
std::vector<ScreenLine> ShardTable(const v1::RunStatus& status, const ScreenSize& size);

/// Returns the same for the aggregators. One that is silent, or has never reported, is marked.
std::vector<ScreenLine> AggregatorTable(const v1::RunStatus& status, const ScreenSize& size);

/// Returns the same for the workers.
std::vector<ScreenLine> WorkerTable(const v1::RunStatus& status, const ScreenSize& size);

/// Returns the same for those who follow the weights. A reader that is further behind than it wants
/// to be is marked.
std::vector<ScreenLine> ReaderTable(const v1::RunStatus& status, const ScreenSize& size);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_TABLES_H_
