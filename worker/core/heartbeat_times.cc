#include "worker/core/heartbeat_times.h"

#include <algorithm>

namespace slipstream {

absl::Duration HeartbeatInterval(absl::Duration lease, uint32_t workers) {
  const absl::Duration of_many = std::max(absl::Milliseconds(500), workers * absl::Milliseconds(1));
  return std::min(lease / 3, of_many);
}

absl::Time NextHeartbeat(absl::Time now, absl::Duration interval, WorkerId worker) {
  const int64_t moments = std::max<int64_t>(1, interval / kHeartbeatGrid);
  const absl::Duration phase = (int64_t{Value(worker)} % moments) * kHeartbeatGrid;
  const absl::Duration since = now - absl::UnixEpoch() - phase;
  return absl::UnixEpoch() + phase + absl::Floor(since, interval) + interval;
}

}  // namespace slipstream
