#include "deploy/psctl/compare/chart_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace slipstream {
namespace {

/// Returns the smallest number that is not below `step` and is 1, 2 or 5 times a power of ten.
double RoundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

ChartScale ChartScale::Around(double low, double high, int ticks, double step_min) {
  PS_CHECK(std::isfinite(low) && std::isfinite(high) && low <= high && ticks > 0);
  const double size = std::max(1.0, std::abs(high));
  if (high - low < 1e-9 * size) high = low + std::max(1.0, 1e-6 * size);
  const double step = RoundStep(std::max((high - low) / ticks, step_min));
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  ChartScale scale;
  scale.low = first * step;
  scale.high = last * step;
  scale.decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  for (long i = 0; i <= std::lround(last - first); ++i) {
    scale.ticks.push_back((first + static_cast<double>(i)) * step);
  }
  return scale;
}

std::string ChartScale::Label(double tick) const {
  const auto found = std::ranges::find(ticks, tick);
  const auto at = static_cast<size_t>(found - ticks.begin());
  if (at < labels.size()) return labels[at];
  // A rounding error must not turn the label 0 into -0.
  const double shown = std::abs(tick) < (high - low) * 1e-9 ? 0 : tick;
  return fmt::format("{:.{}f}", shown, decimals);
}

}  // namespace slipstream
