#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_CHART_SCALE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_CHART_SCALE_H_

#include <string>
#include <vector>

namespace slipstream {

/// The range of values along an axis of a chart, and the ticks: the values that get a label.
struct ChartScale {
  double low = 0;
  double high = 1;
  std::vector<double> ticks;

  /// The number of decimals with which labels of different ticks differ.
  int decimals = 0;

  /// The labels of the ticks, one for each; empty for the numbers themselves.
  std::vector<std::string> labels = {};

  /// Returns a range that contains `low` to `high` and begins and ends with a tick. It has about
  /// `ticks` ticks, whose distance is 1, 2 or 5 times a power of ten and at least `step_min`. If
  /// `low` and `high` are equal, the range is widened. REQUIRES: both are finite, low ≤ high,
  /// ticks > 0.
  static ChartScale Around(double low, double high, int ticks, double step_min = 0);

  std::string Label(double tick) const;

  /// Returns the position of `value` between `low` (0) and `high` (1).
  double ShareOf(double value) const { return (value - low) / (high - low); }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_CHART_SCALE_H_
