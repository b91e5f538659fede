#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_MEAN_INTERVAL_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_MEAN_INTERVAL_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace slipstream {

/// The mean of a few measurements, with its 95 % confidence interval.
struct MeanInterval {
  double mean = 0;

  /// Half the width of the confidence interval, which is `mean` ± this, for measurements that
  /// follow a normal distribution. Absent for one measurement, which tells nothing about their
  /// spread.
  std::optional<double> half_width;
  size_t count = 0;

  /// Returns the mean of `factor` times the measurements. REQUIRES: factor > 0.
  MeanInterval Times(double factor) const;

  /// Returns "18.09 ± 0.31", or "18.09" without an interval.
  std::string Text(int decimals) const;
};

/// Returns the mean of the values and its interval. REQUIRES: there is at least one value.
MeanInterval MeanOf(std::span<const double> values);

/// Returns the two-sided 95 % quantile of Student's t distribution with `degrees` degrees of
/// freedom: the absolute value is above it with a probability of 5 %. The error is below 1e-4.
/// REQUIRES: degrees > 0.
double StudentQuantile95(size_t degrees);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_MEAN_INTERVAL_H_
