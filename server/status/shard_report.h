#ifndef SLIPSTREAM_SERVER_STATUS_SHARD_REPORT_H_
#define SLIPSTREAM_SERVER_STATUS_SHARD_REPORT_H_

#include "absl/time/time.h"
#include "proto/status.pb.h"
#include "server/core/lag_tracker.h"
#include "server/core/shard_machine.h"
#include "server/status/round_clock.h"
#include "server/status/step_times.h"

namespace slipstream {

/// The machine's figures as a status message: all of ShardStatus that it knows. It has a line
/// for each member and for each worker that ever had a gradient in a round, in order of ids.
v1::ShardStatus DescribeShard(const ShardMachine& machine);

/// What a shell measures around the machine: the age of the open round, the steps of the workers
/// that `status` has lines of.
void DescribeTimes(const RoundClock& round, const StepTimes& steps, absl::Time now,
                   v1::ShardStatus& status);

/// Mean, percentiles, histogram and distribution.
v1::StalenessStatus DescribeStaleness(const LagTracker& lag);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_SHARD_REPORT_H_
