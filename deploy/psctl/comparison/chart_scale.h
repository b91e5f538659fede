#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_CHART_SCALE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_CHART_SCALE_H_

#include <string>
#include <vector>

namespace slipstream {

/// The range of values along an axis of a chart, with the values that get a label.
struct ChartScale {
  double low = 0;
  double high = 1;
  std::vector<double> ticks;

  /// Digits behind the point that tell the ticks apart.
  int decimals = 0;

  /// A range that holds `low` to `high` and begins and ends with a tick; ticks lie 1, 2 or 5 times
  /// a power of ten apart, at least `step_min`, and there are about `ticks` of them. Equal bounds
  /// are moved apart. REQUIRES: both are finite, low ≤ high, ticks > 0.
  static ChartScale Around(double low, double high, int ticks, double step_min = 0);

  std::string Label(double tick) const;

  /// Where `value` lies between `low` (0) and `high` (1).
  double ShareOf(double value) const { return (value - low) / (high - low); }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_CHART_SCALE_H_
