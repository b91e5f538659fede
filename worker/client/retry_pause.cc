#include "worker/client/retry_pause.h"

#include <algorithm>

#include "common/process/steady_time.h"
#include "common/rpc/steady_deadline.h"

namespace slipstream {
namespace {

// Between two looks at whether the program is to stop.
constexpr absl::Duration kStopCheckInterval = absl::Milliseconds(20);

}  // namespace

bool PauseBeforeRetry(grpc::Channel& channel, absl::Duration wait, const Sleeper& sleeper) {
  // Refused by a peer that is there.
  if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return sleeper(wait);
  const absl::Time end = SteadyNow() + wait;
  for (;;) {
    if (!sleeper(absl::ZeroDuration())) return false;
    const absl::Time now = SteadyNow();
    if (now >= end) return true;
    if (channel.WaitForConnected(SteadyDeadline(std::min(end, now + kStopCheckInterval))))
      return true;
  }
}

}  // namespace slipstream
