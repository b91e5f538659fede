#include "deploy/lab/measured_times.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/base/check.h"

namespace slipstream {

double ReadClock(MeasuringClock clock) {
  timespec time = {};
  clock_gettime(clock == MeasuringClock::kThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<double> TimesOf(absl::FunctionRef<void()> work, MeasuringClock clock,
                            absl::Duration budget, int calls_min, int calls_max) {
  work();
  std::vector<double> times;
  const double end = ReadClock(MeasuringClock::kSteady) + absl::ToDoubleSeconds(budget);
  for (int calls = 0; calls < calls_max; ++calls) {
    if (calls >= calls_min && ReadClock(MeasuringClock::kSteady) >= end) break;
    const double begin = ReadClock(clock);
    work();
    times.push_back(ReadClock(clock) - begin);
  }
  return times;
}

double Quantile(std::vector<double> values, double share) {
  PS_CHECK(!values.empty());
  const auto place =
      static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(place));
  return values[place];
}

}  // namespace slipstream
