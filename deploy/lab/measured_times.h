#ifndef SLIPSTREAM_DEPLOY_LAB_MEASURED_TIMES_H_
#define SLIPSTREAM_DEPLOY_LAB_MEASURED_TIMES_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace slipstream {

/// The clock that a measurement reads.
enum class MeasuringClock {
  kThread,  // The processor time of the calling thread.
  kSteady,
};

/// Returns the clock's time in seconds, from a beginning of its own.
double ReadClock(MeasuringClock clock);

/// Returns the seconds that each call of `work` took. After a call that does not count it calls
/// until `budget` is over, but at least `calls_min` and at most `calls_max` times.
std::vector<double> TimesOf(absl::FunctionRef<void()> work, MeasuringClock clock,
                            absl::Duration budget, int calls_min = 5, int calls_max = 5000);

/// Returns the value below which `share` of the values lie. REQUIRES: there are values; share is in
/// [0, 1].
double Quantile(std::vector<double> values, double share);

inline double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_MEASURED_TIMES_H_
