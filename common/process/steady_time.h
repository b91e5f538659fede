#ifndef SLIPSTREAM_COMMON_PROCESS_STEADY_TIME_H_
#define SLIPSTREAM_COMMON_PROCESS_STEADY_TIME_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace slipstream {

/// Returns the time of day at the first call plus the steady time since then. It never goes back,
/// and setting the clock makes no lease end and no wait last. Use it for differences only; two
/// processes have different beginnings. Thread-safe.
inline absl::Time SteadyNow() {
  static const absl::Time kStart = absl::Now();
  static const std::chrono::steady_clock::time_point kSteadyStart =
      std::chrono::steady_clock::now();
  return kStart + absl::FromChrono(std::chrono::steady_clock::now() - kSteadyStart);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_STEADY_TIME_H_
