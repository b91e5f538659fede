#include "server/core/coordinator/speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/limits.h"

namespace slipstream {

uint64_t StepsBySpeed(uint64_t steps, double speed, double fastest) {
  PS_CHECK(steps > 0 && speed > 0 && speed <= fastest);
  if (speed == fastest) return steps;  // Rounding might give one step less.
  const double share = std::floor(static_cast<double>(steps) * speed / fastest);
  return std::clamp(static_cast<uint64_t>(share), uint64_t{1}, steps);
}

WorkerSpeeds::WorkerSpeeds(uint64_t steps) : steps_(steps) { PS_CHECK(steps > 0); }

absl::Status WorkerSpeeds::Report(WorkerId worker, double steps_per_second) {
  // Not a number fails this comparison, too.
  if (!(steps_per_second >= 0 && steps_per_second <= kStepsPerSecondMax)) {
    return absl::InvalidArgumentError(
        fmt::format("steps_per_second must be a number in [0, {}], and not {}", kStepsPerSecondMax,
                    steps_per_second));
  }
  if (steps_per_second == 0) return absl::OkStatus();
  const auto [known, is_new] = speeds_.emplace(worker, steps_per_second);
  if (!is_new) known->second += kShareOfNew * (steps_per_second - known->second);
  return absl::OkStatus();
}

std::optional<uint64_t> WorkerSpeeds::StepsOf(WorkerId worker) const {
  const auto known = speeds_.find(worker);
  if (known == speeds_.end()) return std::nullopt;
  double fastest = 0;
  for (const auto& [other, speed] : speeds_) fastest = std::max(fastest, speed);
  return StepsBySpeed(steps_, known->second, fastest);
}

}  // namespace slipstream
