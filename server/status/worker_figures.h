#ifndef SLIPSTREAM_SERVER_STATUS_WORKER_FIGURES_H_
#define SLIPSTREAM_SERVER_STATUS_WORKER_FIGURES_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"

namespace slipstream {

/// How many of a worker's last steps are kept, however many it sends.
inline constexpr int kRecentStepsMax = 8;

/// The most bytes of a text for people; a longer one is refused.
inline constexpr size_t kNonfiniteWhatBytesMax = 256;

/// Returns the part of a heartbeat that status shows, and nothing else that it may hold: it is kept
/// for every worker as long as the run lasts. Fails, naming the field, if a field is larger than a
/// worker of a run with so many shards can make it, or is no such figure.
absl::StatusOr<v1::HeartbeatRequest> FiguresOf(const v1::HeartbeatRequest& heartbeat,
                                               size_t shards);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_WORKER_FIGURES_H_
