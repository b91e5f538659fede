#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_REPORT_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_REPORT_H_

#include "absl/time/time.h"
#include "proto/status.pb.h"
#include "server/core/lag_tracker.h"
#include "server/core/round_clock.h"
#include "server/core/shard_core.h"
#include "server/core/step_times.h"

namespace slipstream {

/// The core's figures as a status message: all of ShardStatus that the core knows. It has a line
/// for each member and for each worker that ever had a gradient in a round, in order of ids.
v1::ShardStatus DescribeShard(const ShardCore& core);

/// What a shell measures around the core: the age of the open round, the steps of the workers that
/// `status` has lines of.
void DescribeTimes(const RoundClock& round, const StepTimes& steps, absl::Time now,
                   v1::ShardStatus& status);

/// Mean, percentiles, histogram and distribution.
v1::StalenessStatus DescribeStaleness(const LagTracker& lag);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_REPORT_H_
