#ifndef SLIPSTREAM_WORKER_CORE_HEARTBEAT_TIMES_H_
#define SLIPSTREAM_WORKER_CORE_HEARTBEAT_TIMES_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// When workers send heartbeats. A coordinator that wakes up for each of a thousand messages spends
/// most of its time on waking up, so heartbeats are due at moments that all clocks know: within
/// each interval of the time of day those that lie `kHeartbeatGrid` apart, the workers spread over
/// them by their ids. Where clocks differ, the messages come at other moments and all still works.
inline constexpr absl::Duration kHeartbeatGrid = absl::Milliseconds(100);

/// A worker's interval. The figures that status shows shall not be old, though the lease may be
/// long; but of many workers the coordinator is to hear no more than a thousand times a second, as
/// far as the lease allows.
absl::Duration HeartbeatInterval(absl::Duration lease, uint32_t workers);

/// The interval of a worker for which nothing is left but to hear of the end.
inline absl::Duration HurriedInterval(absl::Duration interval) { return interval / 5; }

/// The first moment after `now` at which `worker` is due. REQUIRES: interval > 0.
absl::Time NextHeartbeat(absl::Time now, absl::Duration interval, WorkerId worker);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_HEARTBEAT_TIMES_H_
