#include "worker/client/retry_pause.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"

namespace slipstream {
namespace {

// Between two looks at whether the program is to stop.
constexpr absl::Duration kSlice = absl::Milliseconds(20);

}  // namespace

bool PauseBeforeRetry(grpc::Channel& channel, absl::Duration wait, const Sleeper& sleeper) {
  // Refused by a peer that is there.
  if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return sleeper(wait);
  // Not the time of day, which may be set back by hours.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    if (!sleeper(absl::ZeroDuration())) return false;
    const absl::Duration left = wait - absl::FromChrono(Clock::now() - begin);
    if (left <= absl::ZeroDuration()) return true;
    const absl::Time end = absl::Now() + std::min(left, kSlice);
    if (channel.WaitForConnected(absl::ToChronoTime(end))) return true;
  }
}

}  // namespace slipstream
