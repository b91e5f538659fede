#include "server/status/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace slipstream {
namespace {

/// Returns a text like "3.2 s" or "17 ms".
std::string Text(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  return seconds < 0.9995 ? fmt::format("{:.3g} ms", 1000 * seconds)
                          : fmt::format("{:.1f} s", seconds);
}

std::optional<absl::Duration> MeasureOf(std::span<const WorkerPace> workers) {
  std::vector<absl::Duration> steps;
  for (const WorkerPace& worker : workers) {
    if (worker.steps >= kStepsMin) steps.push_back(worker.step);
  }
  if (steps.size() < 2) return std::nullopt;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle;
}

/// Returns why the worker is a straggler; empty if it is not.
std::string ReasonOf(const WorkerPace& worker, absl::Duration measure) {
  if (worker.owes_gradient && worker.holding > kSilentFactor * measure &&
      worker.holding > kSilenceMin) {
    return fmt::format("has not pushed for {}, where the median step takes {}",
                       Text(worker.holding), Text(measure));
  }
  if (worker.steps >= kStepsMin && worker.step > kSlowFactor * measure) {
    return fmt::format("its steps take {}, {:.1f} times the median of {}", Text(worker.step),
                       absl::FDivDuration(worker.step, std::max(measure, absl::Microseconds(1))),
                       Text(measure));
  }
  return "";
}

}  // namespace

std::map<WorkerId, std::string> FindStragglers(std::span<const WorkerPace> workers) {
  std::map<WorkerId, std::string> stragglers;
  const std::optional<absl::Duration> measure = MeasureOf(workers);
  if (!measure.has_value()) return stragglers;
  for (const WorkerPace& worker : workers) {
    const std::string reason = ReasonOf(worker, *measure);
    if (!reason.empty()) stragglers[worker.worker] = reason;
  }
  return stragglers;
}

}  // namespace slipstream
