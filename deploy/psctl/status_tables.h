#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_TABLES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_TABLES_H_

#include <vector>

#include "deploy/psctl/screen_line.h"
#include "proto/status.pb.h"

namespace slipstream {

/// A heading and a line for each shard, in room of `size`: columns are left out where it is narrow,
/// and lines where it is low, of those first that are well. Then the last line says how many are
/// left out. REQUIRES: size.rows > 1.
std::vector<ScreenLine> ShardTable(const v1::RunStatus& status, const ScreenSize& size);

/// The same for each worker.
std::vector<ScreenLine> WorkerTable(const v1::RunStatus& status, const ScreenSize& size);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_TABLES_H_
