#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_REPORT_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_REPORT_H_

#include "proto/status.pb.h"
#include "server/core/lag_tracker.h"
#include "server/core/shard_core.h"

namespace slipstream {

/// The core's figures as a status message: all of ShardStatus that the core knows.
v1::ShardStatus DescribeShard(const ShardCore& core);

/// Mean, percentiles and histogram.
v1::StalenessStatus DescribeStaleness(const LagTracker& lag);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_REPORT_H_
