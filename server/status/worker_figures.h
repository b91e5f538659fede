#ifndef SLIPSTREAM_SERVER_STATUS_WORKER_FIGURES_H_
#define SLIPSTREAM_SERVER_STATUS_WORKER_FIGURES_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"

namespace slipstream {

/// Of each worker the last so many steps are kept, whatever it sends.
inline constexpr int kRecentStepsMax = 8;

/// For people; a longer text is refused.
inline constexpr size_t kNonfiniteWhatBytesMax = 256;

/// What status shows of a heartbeat, and nothing else that it may hold: as long as the run lasts it
/// is kept for every worker. Fails naming the field that is larger than a worker of a run with so
/// many shards can make it.
absl::StatusOr<v1::HeartbeatRequest> FiguresOf(const v1::HeartbeatRequest& heartbeat,
                                               size_t shards);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_WORKER_FIGURES_H_
