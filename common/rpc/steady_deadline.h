#ifndef SLIPSTREAM_COMMON_RPC_STEADY_DEADLINE_H_
#define SLIPSTREAM_COMMON_RPC_STEADY_DEADLINE_H_

#include <grpc/support/time.h>

#include <algorithm>

#include "absl/time/time.h"
#include "common/process/steady_time.h"

namespace slipstream {

/// Converts `deadline`, a time of SteadyNow's clock, to the form in which gRPC takes a steady time
/// instead of a time of day.
inline gpr_timespec SteadyDeadline(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const absl::Duration left = std::max(absl::ZeroDuration(), deadline - SteadyNow());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(left), GPR_TIMESPAN));
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_STEADY_DEADLINE_H_
