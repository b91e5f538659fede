#ifndef SLIPSTREAM_SERVER_STATUS_SHARD_REPORT_H_
#define SLIPSTREAM_SERVER_STATUS_SHARD_REPORT_H_

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"
#include "server/core/shard/lag_tracker.h"
#include "server/core/shard/shard_machine.h"
#include "server/status/round_clock.h"
#include "server/status/step_times.h"

namespace slipstream {

/// Returns the machine's figures as a status message: all of ShardStatus that the machine knows.
/// The message has a line for each member and for each worker that ever had a gradient in a round,
/// in order of ids.
v1::ShardStatus DescribeShard(const ShardMachine& machine);

/// Returns how far the shard has come, as its server tells the coordinator.
v1::ShardProgress ProgressOf(const ShardMachine& machine);

/// Adds the times that a shell measures around the machine: the age of the open round, and the
/// steps of the workers that `status` has lines of.
void DescribeTimes(const RoundClock& round, const StepTimes& steps, absl::Time now,
                   v1::ShardStatus& status);

/// Returns mean, percentiles, histogram and distribution of the staleness.
v1::StalenessStatus DescribeStaleness(const LagTracker& lag);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_SHARD_REPORT_H_
