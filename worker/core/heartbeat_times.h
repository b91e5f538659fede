#ifndef SLIPSTREAM_WORKER_CORE_HEARTBEAT_TIMES_H_
#define SLIPSTREAM_WORKER_CORE_HEARTBEAT_TIMES_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// The times at which workers send heartbeats. A coordinator that wakes up for each of a thousand
/// messages spends most of its time waking up. So heartbeats are due at times of day that all
/// clocks share: multiples of `kHeartbeatGrid` within each interval, over which the workers are
/// spread by their ids. Where clocks differ, the messages arrive at other times, and everything
/// still works.
inline constexpr absl::Duration kHeartbeatGrid = absl::Milliseconds(100);

/// Returns a worker's heartbeat interval. The figures in the status should be recent even if the
/// lease is long. With many workers the coordinator should receive at most a thousand heartbeats a
/// second, as far as the lease allows.
absl::Duration HeartbeatInterval(absl::Duration lease, uint32_t workers);

/// Returns the interval of a worker that only waits for the end of the run.
inline absl::Duration HurriedInterval(absl::Duration interval) { return interval / 5; }

/// Returns the first time after `now` at which `worker` is due. REQUIRES: interval > 0.
absl::Time NextHeartbeat(absl::Time now, absl::Duration interval, WorkerId worker);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_HEARTBEAT_TIMES_H_
