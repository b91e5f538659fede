#ifndef SLIPSTREAM_WORKER_CLIENT_RETRY_PAUSE_H_
#define SLIPSTREAM_WORKER_CLIENT_RETRY_PAUSE_H_

#include <grpcpp/channel.h>

#include "absl/time/time.h"
#include "worker/client/retry_schedule.h"

namespace slipstream {

/// The wait before a failed call over `channel` is made again; over as soon as a lost connection is
/// there again. Returns false if the program is to stop.
///
/// A plain sleep would not do: a channel makes progress only while a thread waits on it (gRPC's own
/// looks after it every five seconds), so a peer that is back would be noticed late.
bool PauseBeforeRetry(grpc::Channel& channel, absl::Duration wait, const Sleeper& sleeper);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RETRY_PAUSE_H_
